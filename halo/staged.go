package halo

import (
	"siafu/graph/mapped"
	"siafu/halo/codec"
	"siafu/kernels"
)

// staged are rows on their way between where the rank's Ops compute and the
// carriers, which work on memory of the host. Where Ops compute there too, ghosts
// are the exchange's own matrix and nothing else is needed: rows that go out are
// read, and gradients that come in are added, where they lie. Elsewhere Ops pack
// and add, and only what crosses the partition crosses to the host.
type staged struct {
	ghosts []float32 // [Ghosts x maxCols]
	// nil and none unless Ops compute elsewhere [len(SendRows) x maxCols]
	rows     []float32
	there    kernels.Mat
	sendRows kernels.Vector[uint32]
}

// stage makes the room.
func (e *Exchange) stage() {
	p, s, ghosts, buffers := e.plan, &e.staged, e.arena.For(Ghosts), e.arena.For(Buffers)
	s.ghosts = mapped.Make[float32](ghosts, p.Ghosts*e.maxCols)
	e.ghosts = kernels.PlaceMat(e.ops, ghosts, p.Ghosts, e.maxCols, s.ghosts)
	e.sums = kernels.NewMat(e.ops, buffers, p.Sums, e.maxCols)
	if e.ops.Remote() {
		s.rows = mapped.Make[float32](buffers, len(p.SendRows)*e.maxCols)
		s.there = kernels.NewMat(e.ops, buffers, len(p.SendRows), e.maxCols)
		s.sendRows = kernels.Place(e.ops, buffers, p.SendRows)
	}
}

// leaving are the rows of x and of sums that go out.
func (e *Exchange) leaving(x kernels.Mat) codec.Rows {
	n, cols := len(e.plan.SendRows), x.Cols
	rows := codec.Rows{Cols: cols, Len: n, IDs: e.sendIDs, Sums: e.sendSums}
	if !e.ops.Remote() {
		rows.X, rows.More, rows.Index = x.Host(), e.Sums(cols).Host(), e.plan.SendRows
		return rows
	}
	packed := e.staged.there.Reshape(n, cols)
	e.ops.PackRows(packed, e.staged.sendRows, x, e.Sums(cols))
	rows.X = e.staged.rows[:n*cols]
	kernels.Read(e.ops, rows.X, packed)
	return rows
}

// returning is where gradients of own rows and of sums come in; those of own
// rows are known at the end.
func (e *Exchange) returning(cols int) codec.Rows {
	n := len(e.plan.SendRows)
	if e.ops.Remote() {
		return codec.Rows{X: e.staged.rows[:n*cols], Cols: cols, Len: n}
	}
	return codec.Rows{More: e.Sums(cols).Host(), Cols: cols, Len: n, Index: e.plan.SendRows}
}

// addReturned adds what has come in to own rows and to sums, which are zero
// before, in ascending order of ranks.
func (e *Exchange) addReturned(own kernels.Mat) {
	n, cols := len(e.plan.SendRows), own.Cols
	sums, packed := e.Sums(cols), e.staged.there.Reshape(n, cols)
	e.ops.Clear(sums)
	kernels.Write(e.ops, packed, e.staged.rows)
	for q := range e.plan.Parts {
		from, to := int(e.plan.SendStart[q]), int(e.plan.SendStart[q+1])
		e.ops.AddRows(own, sums, e.staged.sendRows.Part(from, to), packed.Part(from, to))
	}
}
