package kernels_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

// eachSet runs f with a name of every instruction set that this machine has.
func eachSet(t *testing.T, f func(t *testing.T, set string)) {
	for _, set := range []string{"go", "avx2", "avx512"} {
		t.Run(set, func(t *testing.T) {
			team := kernels.NewTeam(1)
			defer team.Close()
			use(t, team, set)
			f(t, set)
		})
	}
}

// A row's mask does not depend on its width, its neighbours or its alignment: widths around
// every multiple of a vector, odd and even numbers of rows, unaligned.
func TestDropoutWidths(t *testing.T) {
	eachSet(t, func(t *testing.T, set string) {
		team := kernels.NewTeam(1)
		defer team.Close()
		use(t, team, set)
		for _, cols := range []int{1, 3, 7, 8, 9, 15, 16, 17, 24, 25, 31, 32, 33, 41, 47, 48, 49, 64, 65, 95, 128, 602} {
			for _, rows := range []int{1, 2, 3} {
				d := &kernels.Dropout{Seed: 77, Epoch: 5, Layer: 2, P: 0.4, IDs: kernels.HostVector([]uint32{4e9, 3, 1 << 31})}
				x := kerneltest.Values(rows*cols+1, 8)[1:]
				dst := append(make([]float32, rows*cols), 99)
				flat.DropoutRows(team, dst, rows, cols, x, d)
				for i, v := range dst[:rows*cols] {
					words := kernels.Philox([4]uint32{d.IDs.Host()[i/cols], uint32(i % cols / 4), 5, 2}, [2]uint32{77, 0})
					var want float32
					if float64(words[i%cols%4]) < 0.6*(1<<32) {
						want = x[i] * float32(1/0.6)
					}
					if math.Float32bits(v) != math.Float32bits(want) {
						t.Fatalf("%d x %d: element %d is %v, want %v", rows, cols, i, v, want)
					}
				}
				if dst[rows*cols] != 99 {
					t.Fatal(fmt.Sprint(rows, " x ", cols, ": written behind the end"))
				}
			}
		}
	})
}

// hubProducts returns XW and XᵀG of a matrix X [rows x cols] with short and long rows, and one
// column in every row, which is a hub of the transpose. It also returns the hub's row of XᵀG
// in float64.
func hubProducts(team *kernels.Team, n int, d *kernels.Dropout) (xw, xg []float32, hub []float64) {
	const rows, cols = 40000, 700
	xs := graph.SparseRows{Offsets: make([]int64, 1, rows+1)}
	for r := range rows {
		xs.Cols = append(xs.Cols, 3)
		step := cols / (r%3 + 1)
		if r == 7 {
			step = 1
		}
		for c := 4 + r%5; c < cols; c += step {
			xs.Cols = append(xs.Cols, uint32(c))
		}
		xs.Offsets = append(xs.Offsets, int64(len(xs.Cols)))
	}
	xs.Vals = kerneltest.Values(len(xs.Cols), 1)
	arena := mapped.NewArena()
	defer arena.Free()
	xt := flat.TransposeSparse(xs, cols, arena)
	w, g := kerneltest.Values(cols*n, 2), kerneltest.Values(rows*n, 3)
	xw, xg = make([]float32, rows*n), make([]float32, cols*n)
	flat.SparseMatMul(team, xw, n, xs, w, d)
	flat.SparseMatMulTransA(team, xg, n, xt, g, d)

	hub = make([]float64, n)
	for r := range rows {
		word := kernels.Philox([4]uint32{uint32(r), 0, uint32(d.Epoch), 0}, [2]uint32{uint32(d.Seed), 0})[3]
		if float64(word) >= (1-d.P)*(1<<32) {
			continue
		}
		for j := range hub {
			hub[j] += float64(xs.Vals[xs.Offsets[r]]) / (1 - d.P) * float64(g[r*n+j])
		}
	}
	return xw, xg, hub
}

// Products with sparse features are the same bits with every instruction set and
// for any number of workers, also where a word is in every row.
func TestSparseHubs(t *testing.T) {
	const n = 37
	for _, p := range []float64{0, 0.5} {
		d := &kernels.Dropout{Seed: 9, Epoch: 1, P: p}
		var xw, xg []float32
		for _, c := range []struct {
			set     string
			workers int
		}{{"go", 2}, {"avx512", 1}, {"avx2", 1}, {"avx512", 3}} {
			team := kernels.NewTeam(c.workers)
			defer team.Close()
			use(t, team, c.set)
			gotW, gotG, hub := hubProducts(team, n, d)
			for j, want := range hub {
				if math.Abs(float64(gotG[3*n+j])-want) > 0.02 {
					t.Fatalf("%v: element %d of the hub is %v, want %v", c, j, gotG[3*n+j], want)
				}
			}
			if xw == nil {
				xw, xg = gotW, gotG
			}
			if !slices.Equal(mapped.Bytes(xw), mapped.Bytes(gotW)) || !slices.Equal(mapped.Bytes(xg), mapped.Bytes(gotG)) {
				t.Errorf("%v: other bits, dropout %v", c, p)
			}
		}
	}
}

// Every optimiser gives the same bits with every instruction set in every step, for any number
// of elements, unaligned and not finite. It writes nothing else.
func TestOptimizerOfEveryInstructionSet(t *testing.T) {
	configs := []kernels.OptimizerConfig{
		{Name: "sgd", LR: 0.3}, {Name: "sgd", LR: 0.3, WeightDecay: 0.01},
		{Name: "sgd", LR: 0.3, Momentum: 0.9, WeightDecay: 0.01},
		{Name: "adam", LR: 0.01}, {Name: "adam", LR: 0.01, WeightDecay: 0.01},
		{Name: "adamw", LR: 0.01, Beta1: 0.8, WeightDecay: 0.1},
	}
	for _, c := range configs {
		for _, n := range []int{0, 1, 7, 8, 9, 15, 16, 17, 33, 1000} {
			want := optimized(t, c, "go", n)
			for _, set := range []string{"avx2", "avx512"} {
				for i, v := range optimized(t, c, set, n) {
					if math.Float32bits(v) != math.Float32bits(want[i]) && (v == v || want[i] == want[i]) {
						t.Fatalf("%+v with %s: element %d of %d is %v, want %v", c, set, i, n, v, want[i])
					}
				}
			}
		}
	}
}

// optimized returns n parameters, their gradients and state after a few steps, with adjacent
// memory.
func optimized(t *testing.T, c kernels.OptimizerConfig, set string, n int) []float32 {
	o, err := kernels.NewOptimizer(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := kernels.UseIn(o, set); err != nil {
		t.Skip(err)
	}
	arrays := [][]float32{kerneltest.Values(n+2, 1), kerneltest.Values(n+2, 2)}
	var state [][]float32
	for i := range o.StateSlots() {
		s := kerneltest.Values(n+2, uint64(3+i))
		for j, v := range s {
			s[j] = v * v
		}
		arrays, state = append(arrays, s), append(state, s[1:n+1])
	}
	param, grad := arrays[0][1:n+1], arrays[1][1:n+1]
	if n > 16 {
		param[3], grad[5], grad[n-1] = float32(math.Inf(1)), float32(math.NaN()), float32(math.Inf(-1))
		grad[7], grad[8] = 0, 1e-40
	}
	for step := range 3 {
		o.Step(step+1, param, grad, state, step != 1)
	}
	return slices.Concat(arrays...)
}
