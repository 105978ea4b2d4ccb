package kerneltest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// shape of the cases of optional
const optionalRows, optionalCols, optionalHeads = 37, 51, 3

// optional compares the kernels that an Ops may leave to kernels.Generic with a Team's. The bits
// must be equal.
func (s Suite) optional(t *testing.T) {
	team := kernels.NewTeam(1)
	defer team.Close()
	g := optionalEdges()
	for name, run := range map[string]func(l *fixture, g kernels.Gather) []kernels.Mat{
		"maxima": (*fixture).maxima, "lists": (*fixture).listed, "signed attention": (*fixture).signed,
	} {
		here, there := newFixture(team), s.newFixture(team)
		want, got := run(here, g), run(there, g)
		for i := range want {
			if !slices.Equal(mapped.Bytes(there.read(got[i])), mapped.Bytes(here.read(want[i]))) {
				t.Errorf("%s: other bits in result %d", name, i)
			}
		}
		here.done()
		there.done()
	}
	for name, run := range map[string]func(l *fixture, g kernels.Gather) (got, want kernels.Mat){"fused gradient": (*fixture).through,
		"packed rows": (*fixture).packed} {
		l := s.newFixture(team)
		if got, want := run(l, g); !slices.Equal(mapped.Bytes(l.read(got)), mapped.Bytes(l.read(want))) {
			t.Errorf("%s: other bits", name)
		}
		l.done()
	}
}

// optionalEdges returns edges between vertices; some vertices have none.
func optionalEdges() (g kernels.Gather) {
	rng := rand.New(rand.NewPCG(1, 2))
	for r := range optionalRows {
		g.Begin = append(g.Begin, int64(len(g.Cols)))
		for range r % 7 {
			g.Cols = append(g.Cols, uint32(rng.IntN(optionalRows)))
		}
		g.End = append(g.End, int64(len(g.Cols)))
	}
	return g
}

// values returns a matrix of random numbers in the memory of the Ops.
func (l *fixture) values(rows, cols int, seed uint64) kernels.Mat {
	return l.in(rows, cols, Values(rows*cols, seed))
}

func (l *fixture) maxima(g kernels.Gather) []kernels.Mat {
	dst, arg, back := l.values(optionalRows, optionalCols, 1), l.values(optionalRows, optionalCols, 1),
		l.values(optionalRows, optionalCols, 1)
	x, e, ids := l.values(optionalRows, optionalCols, 2), l.edges(g), make([]uint32, optionalRows)
	for v := range ids {
		ids[v] = uint32(optionalRows - v)
	}
	l.MaxGather(dst, arg, e, x, place(l, ids), false)
	none := e
	none.End = none.Begin
	l.MaxGather(dst, arg, none, x, place(l, ids), true)
	l.MaxGatherGrad(back, e, arg, x, 0)
	return []kernels.Mat{dst, back}
}

func (l *fixture) listed(g kernels.Gather) []kernels.Mat {
	xs := graph.SparseRows{Offsets: []int64{0}}
	ids := make([]uint32, optionalRows)
	for r := range optionalRows {
		for c := r % 5; c < optionalCols; c += 1 + r {
			xs.Cols, xs.Vals = append(xs.Cols, uint32(c)), append(xs.Vals, float32(c+1))
		}
		xs.Offsets, ids[r] = append(xs.Offsets, int64(len(xs.Cols))), uint32(3*r)
	}
	rows := kernels.NewLists(optionalRows, optionalCols, make([]uint64, kernels.ListWords(optionalRows, len(xs.Vals))))
	l.List(rows, 0, l.sparse(xs), l.drop(&kernels.Dropout{Seed: 5, Epoch: 2, P: 0.5, IDs: kernels.HostVector(ids)}))
	dst := l.values(optionalRows, optionalCols, 1)
	l.SpMMLists(dst, l.edges(g), rows, true)
	return []kernels.Mat{dst}
}

func (l *fixture) signed(g kernels.Gather) []kernels.Mat {
	a := kernels.Attention{Heads: optionalHeads, Width: optionalCols / optionalHeads, Slope: 0.2}
	g.SelfLoops = true
	mat := func(cols int, seed uint64) kernels.Mat { return l.values(optionalRows, cols, seed) }
	dst, signed, stats, lse, dr := mat(a.Columns(), 1), mat(a.Emitted(), 1), mat(2*a.Heads, 1), mat(a.Heads, 1), mat(a.Heads, 1)
	l.AttentionGather(a, dst, signed, stats, l.edges(g), kernels.Emitted{X: mat(a.Emitted(), 2)}, mat(a.Heads, 3), false)
	l.AttentionFinish(a, dst, signed, lse, stats)
	l.AttentionGradSigned(a, dr, signed, mat(a.Columns(), 4), mat(a.Heads, 5))
	return []kernels.Mat{dst, signed, lse, dr}
}

func (l *fixture) through(kernels.Gather) (got, want kernels.Mat) {
	a, b, a2, b2 := l.values(optionalRows, 5, 1), l.values(optionalCols, 5, 2), l.values(optionalRows, 7, 3), l.values(optionalCols, 7, 4)
	h, sum := l.values(optionalRows, optionalCols, 6), l.values(optionalRows, optionalCols, 7)
	l.MatMulTransB(sum, a, b, false)
	l.MatMulTransB(sum, a2, b2, true)
	l.BiasReLUDropoutGrad(sum, kernels.Mat{}, sum, h, true, nil)
	l.GradThrough(h, a, b, a2, b2, nil)
	return h, sum
}

func (l *fixture) packed(g kernels.Gather) (got, want kernels.Mat) {
	got, want = l.values(optionalRows, optionalCols, 1), l.values(optionalRows, optionalCols, 1)
	if !l.Remote() && !l.Packs(optionalCols) { // a Team in plain Go
		return got, want
	}
	x, target, e := l.values(optionalRows, optionalCols, 2), l.values(optionalRows, optionalCols, 3), l.edges(g)
	l.SpMM(want, e, x, true)
	p := kernels.NewPacked(target, make([]uint64, kernels.PackedWords*optionalRows))
	kept := l.Pack(p, 0, x.Part(0, 9)) + l.Pack(p, 9, x.Part(9, optionalRows))
	l.SpMMPacked(got, e, p, int64(kept), true)
	return got, want
}
