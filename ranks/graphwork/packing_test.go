package graphwork

import (
	"slices"
	"testing"

	"siafu/graph/mapped"
	"siafu/kernels"
	"siafu/kernels/kerneltest"
)

// Passes pack in turns, and the faster way stays; what is gathered has
// the same bits, rows without zeros included, which are never packed.
func TestPacking(t *testing.T) {
	ops := kernels.NewTeam(1)
	defer ops.Close()
	const own, width = 300, 64
	if !ops.Packs(width) {
		t.Skip("no instructions for packed rows")
	}
	edges := ring(own)
	x := kerneltest.Values(own*width, 1)
	rows, room := kernels.HostMat(own, width, x), kernels.HostMat(own, width, make([]float32, own*width))
	k := packing{rows: kernels.NewPacked(room, make([]uint64, kernels.PackedWords*own)), own: own}
	pass := func(train bool) (packed bool) {
		k.begin(train)
		for _, at := range [][2]int{{0, 100}, {100, own}} {
			k.publish(Interval{Lo: at[0], Hi: at[1], Ops: ops}, rows.Part(at[0], at[1]))
		}
		got, want := make([]float32, own*width), make([]float32, own*width)
		k.gatherOwn(ops, kernels.HostMat(own, width, got), edges, rows, kernels.Mat{})
		ops.SpMM(kernels.HostMat(own, width, want), edges, rows, false)
		if !slices.Equal(mapped.Bytes(got), mapped.Bytes(want)) {
			t.Fatal("other bits")
		}
		return k.on && k.complete()
	}
	check := func(what string, got, want bool) {
		t.Helper()
		if got != want {
			t.Errorf("%s: packed %t", what, got)
		}
	}
	check("first pass", pass(true), false)
	check("rows without zeros", pass(true), false)
	for i := range x {
		if i%4 != 0 {
			x[i] = 0
		}
	}
	for (k.pass+1)%searchPasses != firstSearch {
		pass(true)
	}
	check("evaluation", pass(false), false)
	check("search", pass(true), true)
	check("its counterpart", pass(true), false)
	for k.pass%searchPasses <= firstSearch+2*searchTurns {
		pass(true)
	}
	for _, faster := range []bool{true, false} {
		k.took = [2]int64{1 << 40, 1}
		if !faster {
			k.took = [2]int64{1, 1 << 40}
		}
		check("choice", k.chooses(), faster)
	}
}

// ring has edges from the next twenty vertices.
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
