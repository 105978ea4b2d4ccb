package kerneltest

import (
	"slices"
	"testing"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Tests of functions that only Ops have: memory, rows that cross a partition, columns, and
// steps.

// one returns a fixture with a team of one worker.
func (s Suite) one() *fixture { return s.newFixture(kernels.NewTeam(1)) }

// read returns m in host memory.
func (l *fixture) read(m kernels.Mat) []float32 {
	x := make([]float32, m.Rows*m.Cols)
	kernels.Read(l, x, m)
	return x
}

func (s Suite) memory(t *testing.T) {
	l := s.one()
	defer l.done()
	x, y := Values(7*5, 1), Values(3*5, 2)
	m := kernels.NewMat(l, l.arena, 7, 5)
	same(t, l.read(m), make([]float32, 35))
	kernels.Write(l, m, x)
	kernels.Write(l, m.Part(2, 5), y)
	want := slices.Clone(x)
	copy(want[10:], y)
	same(t, l.read(m), want)
	same(t, l.read(m.Part(2, 5).Whole(4)), want[10:30])
	other := kernels.PlaceMat(l, l.arena, 7, 5, make([]float32, 35))
	l.Copy(other, m)
	l.Clear(m.Part(6, 7))
	same(t, l.read(other), want)
	same(t, l.read(m)[30:], make([]float32, 5))
	same(t, kernels.Fetch(l, other, new([]float32)), want)
	ids := []uint32{3, 1, 4, 1, 5}
	v := kernels.Place(l, l.arena, ids)
	if got := kernels.FetchVector(l, v.Part(1, 4)); !slices.Equal(got, ids[1:4]) {
		t.Errorf("%v", got)
	}
	f := l.Fork()
	f.Borrow(l.Ops.Fork())
	f.Add(other, other.Part(0, 7))
	for i := range want {
		want[i] *= 2
	}
	same(t, l.read(other), want)
	sum := kernels.PlaceMat(l, l.arena, 7, 5, slices.Clone(want))
	kernels.Sum(l, sum, []kernels.Mat{m, other, m})
	l.Copy(other, m)
	l.Add(other, kernels.PlaceMat(l, l.arena, 7, 5, want))
	l.Add(other, m)
	same(t, l.read(sum), l.read(other))
}

func (s Suite) rows(t *testing.T) {
	const sums = 4
	own := size(900, 90)
	for _, cols := range []int{0, 1, 7, 33} {
		x, more := Values(own*cols, 1), Values(sums*cols, 2)
		all := append(slices.Clone(x), more...)
		var index []uint32
		for v := 0; v < own+sums; v += 3 {
			index = append(index, uint32(v*7%(own+sums)))
		}
		packed, plain := poison(len(index)*cols), make([]float32, len(index)*cols)
		for i, v := range index {
			copy(plain[i*cols:(i+1)*cols], all[int(v)*cols:])
		}
		added := slices.Clone(all)
		for i, v := range index {
			for j := range cols {
				added[int(v)*cols+j] += plain[i*cols+j]
			}
		}
		l := s.newFixture(kernels.NewTeam(3))
		a, b, there := l.out(own, cols, x), l.out(sums, cols, more), place(l, index)
		p := l.out(len(index), cols, packed)
		l.PackRows(p, there, a, b)
		l.AddRows(a, b, there, p)
		l.AddRows(a, b, there.Part(0, 0), p.Part(0, 0))
		l.done()
		same(t, packed, plain)
		same(t, append(slices.Clone(x), more...), added)
	}
}

func (s Suite) columns(t *testing.T) {
	const rows, cols, from, width = 40, 9, 2, 5
	x := Values(rows*cols, 1)
	xs := graph.SparseRows{Offsets: []int64{0}}
	part, put := make([]float32, rows*width), make([]float32, rows*cols)
	for r := range rows {
		for c := range cols {
			if v := x[r*cols+c]; c >= from && c < from+width {
				part[r*width+c-from], put[r*cols+c] = v, v
			}
			xs.Cols, xs.Vals = append(xs.Cols, uint32(c)), append(xs.Vals, x[r*cols+c])
		}
		xs.Offsets = append(xs.Offsets, int64(len(xs.Cols)))
	}
	l := s.one()
	dense, spread, to := kernels.NewMat(l, l.arena, rows, width), kernels.NewMat(l, l.arena, rows, width),
		kernels.NewMat(l, l.arena, rows, cols)
	l.CopyColumns(dense, l.in(rows, cols, x), from)
	l.SpreadColumns(spread, from, l.sparse(xs))
	l.PutColumns(to, from, dense)
	same(t, l.read(dense), part)
	same(t, l.read(spread), part)
	same(t, l.read(to), put)
	l.done()
}

// halves compares operands in bfloat16 with the same operands widened.
func (s Suite) halves(t *testing.T) {
	const m, n, k = 130, 33, 70
	x, b, g, bias, scale := Values(m*k, 1), Values(k*n, 2), Values(m*n, 3), Values(n, 4), Values(m, 5)
	l := s.one()
	defer l.done()
	a, scaled := kernels.NewHalf(l, l.arena, m, k, 0), kernels.NewHalf(l, l.arena, m, k, kernels.HalfSlack)
	X, B, G, bi := l.in(m, k, x), l.in(k, n, b), l.in(m, n, g), l.in(1, n, bias)
	l.PutColumns(a, 0, X.Reshape(m, k))
	l.Narrow(scaled, X, place(l, scale))
	wide, rounded := make([]float32, m*k), make([]kernels.BF16, m*k)
	for i, v := range x {
		rounded[i] = kernels.Narrow(v * scale[i/k])
		wide[i] = kernels.Narrow(v).Float32()
	}
	got := make([]kernels.BF16, m*k)
	l.Download(mapped.Bytes(got), scaled.Address())
	if !slices.Equal(got, rounded) {
		t.Error("Narrow differs")
	}
	W := l.in(m, k, wide)
	for name, f := range map[string]func(a, dst kernels.Mat){
		"MatMul":                func(a, dst kernels.Mat) { l.MatMul(dst.Reshape(m, n), a, B, true) },
		"MatMulBiasReLUDropout": func(a, dst kernels.Mat) { l.MatMulBiasReLUDropout(dst.Reshape(m, n), a, B, bi, true, nil) },
		"MatMulTransA":          func(a, dst kernels.Mat) { l.MatMulTransA(dst.Reshape(k, n), a, G, false) },
	} {
		here, there := kernels.NewMat(l, l.arena, m, n), kernels.NewMat(l, l.arena, m, n)
		f(W, here)
		f(a, there)
		if !slices.Equal(l.read(here), l.read(there)) {
			t.Errorf("%s differs", name)
		}
	}
}

// steps compares with optimisers on slices.
func (s Suite) steps(t *testing.T) {
	for _, c := range []kernels.OptimizerConfig{{Name: "sgd", LR: 0.1}, {Name: "sgd", LR: 0.1, Momentum: 0.9, WeightDecay: 0.1},
		{Name: "adam", LR: 0.1}, {Name: "adamw", LR: 0.1, WeightDecay: 0.1}} {
		o, err := kernels.NewOptimizer(c)
		if err != nil {
			t.Fatal(err)
		}
		const n = 37
		w, grad := Values(n, 1), Values(n, 2)
		l := s.one()
		there, slope := l.in(n, 1, w), l.in(n, 1, grad)
		var state []kernels.Mat
		var here [][]float32
		for range o.StateSlots() {
			state, here = append(state, kernels.NewMat(l, l.arena, n, 1)), append(here, make([]float32, n))
		}
		for step := 1; step < 4; step++ {
			l.Step(o, step, there, slope, state, step%2 == 0)
			o.Step(step, w, grad, here, step%2 == 0)
		}
		same(t, l.read(there), w)
		for k := range here {
			same(t, l.read(state[k]), here[k])
		}
		l.done()
	}
}
