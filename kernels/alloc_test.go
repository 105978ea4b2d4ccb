package kernels_test

import (
	"testing"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

// After the first call, which allocates partial sums, no kernel allocates, including gonum's
// products.
func TestNothingIsAllocated(t *testing.T) {
	if mapped.UnderRace {
		t.Skip("the race detector makes pools forget what they hold")
	}
	const rows, width, classes, features = 3000, 24, 7, 50
	team, rounding := kernels.NewTeam(2), kernels.NewTeam(2)
	defer team.Close()
	defer rounding.Close()
	rounding.RoundOperands(true)
	arena := mapped.NewArena()
	defer arena.Free()
	g := ring(rows, 8)
	coded := g
	coded.Cols, coded.Coded = nil, team.CodeColumns(arena, g.Edges(), kernels.CodeOptions{})
	xs := graph.SparseRows{Offsets: append(g.Begin, g.End[rows-1]), Cols: g.Cols, Vals: kerneltest.Values(len(g.Cols), 1)}
	xt := flat.TransposeSparse(xs, rows, arena)
	a, b, c := kerneltest.Values(rows*width, 1), kerneltest.Values(rows*width, 2), make([]float32, rows*width)
	w, wide := kerneltest.Values(width*width, 3), kerneltest.Values(rows*rows, 4)
	half := make([]kernels.BF16, rows*width+kernels.HalfSlack)
	labels, split, best := make([]int32, rows), make([]uint8, rows), make([]int32, rows)
	drop := &kernels.Dropout{Seed: 1, P: 0.5}
	adam, err := kernels.NewOptimizer(kernels.OptimizerConfig{Name: "adam", LR: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	state := newState(adam, len(w))
	to, from := kernels.HostMat(rows, width, c), kernels.HostMat(rows, width, a)
	edges := kernels.Edges{Begin: kernels.HostVector(g.Begin), End: kernels.HostVector(g.End), Cols: kernels.HostVector(g.Cols)}
	sparse := kernels.PlaceSparse(team, arena, xs)
	there := kernels.NewTransposed(team, arena, sparse, rows)
	there.Fill(team, sparse)
	all := make([]uint32, rows)
	for v := range all {
		all[v] = uint32(v)
	}
	index, weights := kernels.HostVector(all), kernels.HostMat(width, width, w)
	block := kernels.HostMat(rows, width-1, b)
	var slots []kernels.Mat
	for _, s := range state {
		slots = append(slots, kernels.HostMat(width, width, s))
	}
	for name, kernel := range map[string]func(){
		"SpMM":                      func() { flat.SpMM(team, c, width, g, a, false) },
		"SpMM coded":                func() { flat.SpMM(team, c, width, coded, a, false) },
		"SpMMHalf":                  func() { flat.SpMMHalf(team, c, width, g, half, false) },
		"NarrowRows":                func() { flat.NarrowRows(team, half, width, rows, width, a, nil) },
		"MatMul":                    func() { flat.MatMul(team, c, rows, width, width, a, w, false) },
		"rounded MatMul":            func() { flat.MatMul(rounding, c, rows, width, width, a, w, false) },
		"rounded MatMulTransA":      func() { flat.MatMulTransA(rounding, w, width, width, rows, a, b, false) },
		"MatMul wide":               func() { flat.MatMul(team, c, width, rows, width, w, a, true) },
		"MatMulTransB":              func() { flat.MatMulTransB(team, c, rows, width, width, a, w, false) },
		"MatMulTransA":              func() { flat.MatMulTransA(team, w, width, width, rows, a, b, false) },
		"MatMulTransA wide":         func() { flat.MatMulTransA(team, wide, rows, width, width, a, b, false) },
		"SparseMatMul":              func() { flat.SparseMatMul(team, c, width, xs, a, drop) },
		"SparseMatMulTransA":        func() { flat.SparseMatMulTransA(team, c, width, xt, a, drop) },
		"BiasReLUDropout":           func() { flat.BiasReLUDropout(team, c, rows, width, a, b, true, drop) },
		"BiasReLUDropoutGrad":       func() { flat.BiasReLUDropoutGrad(team, c, w[:width], rows, width, a, b, true, drop) },
		"MatMulBiasReLUDropout":     func() { flat.MatMulBiasReLUDropout(team, c, rows, width, width, a, w, b, true, drop) },
		"MatMulBiasReLUDropoutHalf": func() { flat.MatMulBiasReLUDropoutHalf(team, c, rows, width, width, half, w, b, true, drop) },
		"MatMulTransAHalf":          func() { flat.MatMulTransAHalf(team, w, width, width, rows, half, b, false) },
		"DropoutRows":               func() { flat.DropoutRows(team, c, rows, width, a, drop) },
		"ColumnSums":                func() { flat.ColumnSums(team, c, rows, width, a, false) },
		"SoftmaxCrossEntropy": func() {
			flat.SoftmaxCrossEntropy(team, c, rows, classes, a, labels, split, 0, 1)
		},
		"Accuracy": func() { flat.Accuracy(team, rows, classes, a, labels, split) },
		"Argmax":   func() { flat.Argmax(team, best, rows, classes, a) },
		"Softmax":  func() { flat.Softmax(team, c, rows, classes, a) },
		"Adam":     func() { adam.Step(1, w, w, state, true) },
		"Ops.SpMM": func() { team.SpMM(to, edges, from, false) },
		"Ops.SparseMatMulTransA": func() {
			team.SparseMatMulTransA(to, there, from, drop)
		},
		"Ops.PackRows":    func() { team.PackRows(to, index, from, kernels.Mat{}) },
		"Ops.AddRows":     func() { team.AddRows(to, kernels.Mat{}, index, from) },
		"Ops.CopyColumns": func() { team.CopyColumns(block, to, 1) },
		"Ops.PutColumns":  func() { team.PutColumns(to, 1, block) },
		"Ops.Step":        func() { team.Step(adam, 1, weights, weights, slots, true) },
	} {
		if n := kerneltest.Allocs(kernel); n != 0 {
			t.Errorf("%s: %v allocations a call", name, n)
		}
	}
}

// ring returns a graph in which vertex v gathers from degree vertices spread over the whole graph.
func ring(vertices, degree int) kernels.Gather {
	var g kernels.Gather
	for v := range vertices {
		g.Begin = append(g.Begin, int64(len(g.Cols)))
		for d := range degree {
			g.Cols = append(g.Cols, uint32((v*31+d*vertices/degree+d*d)%vertices))
		}
		g.End = append(g.End, int64(len(g.Cols)))
	}
	return g
}
