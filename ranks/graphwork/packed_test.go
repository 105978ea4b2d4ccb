package graphwork

import (
	"slices"
	"testing"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
	"siafu/kernels/model"
)

// Passes alternate between packing and not, and then use the faster one. Gathered rows have
// the same bits, with packed rows stored separately or in place.
func TestPacking(t *testing.T) {
	for name, alone := range map[string]bool{"elsewhere": false, "in place": true} {
		t.Run(name, func(t *testing.T) { testPacking(t, alone) })
	}
}

func testPacking(t *testing.T, alone bool) {
	ops := kernels.NewTeam(1)
	defer ops.Close()
	const own, width = 300, 64
	if !ops.Packs(width) {
		t.Skip("no instructions for packed rows")
	}
	edges := ring(own)
	x := kerneltest.Values(own*width, 1)
	rows, room := kernels.HostMat(own, width, make([]float32, own*width)), kernels.HostMat(own, width, make([]float32, own*width))
	if alone {
		room = rows
	}
	k := packed{rows: kernels.NewPacked(room, make([]uint64, kernels.PackedWords*own)), own: own, alone: alone}
	pass := func(train bool) (packs bool) {
		copy(rows.Host(), x)
		k.begin(model.Pass{Train: train})
		for _, at := range [][2]int{{0, 100}, {100, own}} {
			k.publish(Interval{Lo: at[0], Hi: at[1], Ops: ops}, rows.Part(at[0], at[1]))
		}
		got, want := make([]float32, own*width), make([]float32, own*width)
		k.gatherOwn(Interval{Ops: ops}, kernels.HostMat(own, width, got), edges, rows)
		ops.SpMM(kernels.HostMat(own, width, want), edges, kernels.HostMat(own, width, x), false)
		if !slices.Equal(mapped.Bytes(got), mapped.Bytes(want)) {
			t.Fatal("other bits")
		}
		if packs = k.packs && k.complete(); alone && packs == slices.Equal(rows.Host(), x) {
			t.Fatalf("packed %t, where the rows stand", packs)
		}
		return packs
	}
	check := func(what string, got, want bool) {
		t.Helper()
		if got != want {
			t.Errorf("%s: packed %t", what, got)
		}
	}
	for i := range x {
		if i%4 != 0 && i >= 20*width { // some rows have no zeros
			x[i] = 0
		}
	}
	check("first pass", pass(true), false)
	check("evaluation", pass(false), false)
	check("search", pass(true), true)
	check("its counterpart", pass(true), false)
	for k.pass%searchPasses <= firstSearch+2*searchTurns {
		pass(true)
	}
	for _, faster := range []bool{true, false} {
		k.bestTimes = [2]int64{1 << 40, 1}
		if !faster {
			k.bestTimes = [2]int64{1, 1 << 40}
		}
		check("choice", k.shouldPack(), faster)
	}
}

// Rows and gradients without other readers are packed in place; those that other ranks or
// sampled steps read are not. Of rows that are sent before their dropout, other ranks do not read the
// ones that this rank gathers.
func TestPackedInPlace(t *testing.T) {
	ops, a := kernels.NewTeam(1), mapped.NewArena()
	defer ops.Close()
	defer a.Free()
	if !ops.Packs(64) {
		t.Skip("no instructions for packed rows")
	}
	leastBytes := packedBytes
	packedBytes = 0
	defer func() { packedBytes = leastBytes }()
	for _, c := range []struct {
		name        string
		order       string
		whole       bool // layer 1, with hidden rows that are sent before their dropout
		o           Options
		sends       bool
		rows, grads bool
	}{
		{name: "features with dropout", order: "gather-first", rows: true},
		{name: "their product, and its gradient", order: "apply-first", rows: true, grads: true},
		{name: "a step", order: "apply-first", o: Options{OneWay: true}},
		{name: "asynchronous intervals, which begin no pass", order: "apply-first", o: Options{Asynchronous: true}},
		{name: "rows for others", order: "apply-first", sends: true},
		{name: "rows for others before dropout", order: "gather-first", whole: true, sends: true, rows: true},
	} {
		s := model.Spec{Kind: "gcn", Dims: []int{64, 96, 8}, Dropout: 0.5, InputDropout: 0.5}
		if s.WholeRows = c.whole; c.whole {
			s.Dims, s.InputDropout, s.InPlace = []int{64, 64, 8}, 0, true
		}
		s.Choose(model.Load{FeatureNNZ: 1, CacheFits: true}, model.Choices{Order: c.order, CacheInput: "off"})
		part := ringShard(300)
		if c.sends {
			part.SendRows, part.SendStart[1] = []uint32{0}, 1
		}
		store := model.NewStore(model.New(s, false), model.Place(ops, a, part.Features, part.Own, part.Own), model.InStep, ops, a)
		l := New(store, part, c.o, ops, a).Layer(0)
		if c.whole {
			l = New(store, part, c.o, ops, a).Layer(1)
		}
		if got := inPlace(l.Gather.(*sums).own); got != c.rows {
			t.Errorf("%s: rows packed in place %t", c.name, got)
		}
		if got := inPlace(l.Gather.(*sums).grads); got != c.grads {
			t.Errorf("%s: gradients packed in place %t", c.name, got)
		}
	}
}

func inPlace(f form) bool {
	k, ok := f.(*packed)
	return ok && k.alone
}

// ringShard returns the whole of such a graph.
func ringShard(n int) *shard.Shard {
	e := ring(n)
	s := &shard.Shard{
		Parts: 1, Vertices: int64(n), Directed: true, GhostStart: make([]int64, 2), SendStart: make([]int64, 2),
		Features: graph.Features{Rows: n, Dim: 64, Dense: kerneltest.Values(n*64, 1)}, Split: make([]uint8, n),
		In: graph.CSR{Offsets: append(e.Begin.Host(), int64(20*n)), Cols: e.Cols.Host()}, InOwnEnd: e.End.Host(),
	}
	for v := range n {
		s.Own, s.InDegree, s.OutDegree = append(s.Own, uint32(v)), append(s.InDegree, 20), append(s.OutDegree, 20)
	}
	return s
}

// ring returns edges into each vertex from the next twenty vertices.
func ring(n int) kernels.Edges {
	var g kernels.Gather
	for r := range n {
		g.Begin = append(g.Begin, int64(len(g.Cols)))
		for j := range 20 {
			g.Cols = append(g.Cols, uint32((r+j)%n))
		}
		g.End = append(g.End, int64(len(g.Cols)))
	}
	return g.Edges()
}
