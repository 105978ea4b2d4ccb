package halo

import (
	"unsafe"

	"siafu/graph/mapped"
	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/kernels"
)

// staged are rows on their way between where the rank's Ops compute and the
// carriers, which work on memory of the host. Where Ops compute there too, ghosts
// are the exchange's own matrix and nothing else is needed: rows that go out are
// read, and gradients that come in are added, where they lie. Elsewhere Ops pack
// and add, and only what crosses the partition crosses to the host, beside what they
// compute.
type staged struct {
	ghosts []float32 // [Ghosts x maxCols]
	// nil and none unless Ops compute elsewhere; [len(SendRows) x maxCols]
	rows     []float32
	there    kernels.Mat
	sendRows kernels.Vector[uint32]
	crossing kernels.Crossing
}

// stage makes the room. Where Ops compute elsewhere that on the host is made when it
// is first asked for.
func (e *Exchange) stage() {
	p, s, ghosts, buffers := e.plan, &e.staged, e.arena.For(Ghosts), e.arena.For(Buffers)
	e.sums = kernels.NewMat(e.ops, buffers, p.Sums, e.maxCols)
	if !e.ops.Remote() {
		s.ghosts = mapped.Make[float32](ghosts, p.Ghosts*e.maxCols)
		e.ghosts = kernels.PlaceMat(e.ops, ghosts, p.Ghosts, e.maxCols, s.ghosts)
		return
	}
	e.ghosts = kernels.NewMat(e.ops, ghosts, p.Ghosts, e.maxCols)
	s.there = kernels.NewMat(e.ops, buffers, len(p.SendRows), e.maxCols)
	s.sendRows = kernels.Place(e.ops, buffers, p.SendRows)
	s.crossing = kernels.CrossingOf(e.ops, e.arena)
}

// onHost makes the room on the host, unless it is there.
func (e *Exchange) onHost() *staged {
	s := &e.staged
	if s.ghosts == nil {
		ghosts := mapped.MakeApart(e.arena.For(Ghosts), 4*e.plan.Ghosts*e.maxCols)
		rows := mapped.MakeApart(e.arena.For(Buffers), 4*len(e.plan.SendRows)*e.maxCols)
		s.ghosts, s.rows = mapped.Cast[float32](ghosts), mapped.Cast[float32](rows)
		s.crossing.Pin(ghosts)
		s.crossing.Pin(rows)
	}
	return s
}

// ready has memory of the host be free for an exchange, whose copies wait for what
// was called before.
func (s *staged) ready() {
	s.crossing.Settle()
	s.crossing.Mark()
}

// bring is ready, and sets dst, memory of the host, to x beside what is computed. It
// returns when that is there.
func (s *staged) bring(dst []float32, x kernels.Mat) {
	s.ready()
	s.crossing.Wait(s.crossing.Out(mapped.Bytes(dst), x.Address()))
}

// take sets x to src, memory of the host that stands until ready.
func (s *staged) take(x kernels.Mat, src []float32) {
	s.crossing.In(x.Address(), mapped.Bytes(src))
	s.crossing.Land()
}

// handing reports whether the next way's rows are given to the communicator where Ops
// compute: it says that it takes them, and nobody else reads them. What a rank sends to
// itself the communicator would read.
func (e *Exchange) handing() bool {
	aware, ok := e.comm.(comm.Aware)
	return ok && span(e.plan.SendStart, e.comm.Rank()) == 0 && e.ops.Remote() && e.observer == nil && e.carrier == carrier(e.direct) &&
		aware.DeviceMemory(4*e.maxCols*max(e.plan.Ghosts, len(e.plan.SendRows)))
}

// hand returns x as a communicator takes it, when all that was called before is done.
func (s *staged) hand(x kernels.Mat) []float32 {
	s.bring(nil, x)
	return floatsOf(x)
}

// floatsOf are the elements of x as an address, which Go code must not follow where
// Ops compute elsewhere.
func floatsOf(x kernels.Mat) []float32 {
	return unsafe.Slice((*float32)(x.Address()), x.Rows*x.Cols)
}

// leaving are the rows of x and of sums that go out.
func (e *Exchange) leaving(x kernels.Mat) codec.Rows {
	n, cols := len(e.plan.SendRows), x.Cols
	rows := codec.Rows{Cols: cols, Len: n, IDs: e.sendIDs, Sums: e.sendSums}
	if !e.ops.Remote() {
		rows.X, rows.More, rows.Index = x.Host(), e.Sums(cols).Host(), e.plan.SendRows
		return rows
	}
	s := &e.staged
	packed := s.there.Reshape(n, cols)
	e.ops.PackRows(packed, s.sendRows, x, e.Sums(cols))
	if e.way.handed {
		rows.X = s.hand(packed)
		return rows
	}
	rows.X = e.onHost().rows[:n*cols]
	s.bring(rows.X, packed)
	return rows
}

// arriving is where the rows of ghosts come in.
func (e *Exchange) arriving(cols int) codec.Rows {
	n := e.plan.Ghosts
	if e.way.handed {
		return codec.Rows{X: floatsOf(e.Ghosts(cols)), Cols: cols, Len: n}
	}
	return codec.Rows{X: e.onHost().ghosts[:n*cols], Cols: cols, Len: n}
}

// settled are the ghosts [Ghosts x cols], whose rows have come in.
func (e *Exchange) settled() kernels.Mat {
	ghosts := e.Ghosts(e.way.in.Cols)
	if e.ops.Remote() && !e.way.coded && !e.way.handed {
		e.staged.take(ghosts, e.way.in.X)
	}
	return ghosts
}

// homeward are the gradients of ghosts, which go out.
func (e *Exchange) homeward(cols int) codec.Rows {
	n := e.plan.Ghosts
	rows := codec.Rows{Cols: cols, Len: n, IDs: e.plan.GhostIDs}
	if e.way.handed {
		rows.X = e.staged.hand(e.Ghosts(cols))
		return rows
	}
	rows.X = e.onHost().ghosts[:n*cols]
	if e.ops.Remote() {
		e.staged.bring(rows.X, e.Ghosts(cols))
	}
	return rows
}

// returning is where gradients of own rows and of sums come in; those of own
// rows are known at the end.
func (e *Exchange) returning(cols int) codec.Rows {
	n := len(e.plan.SendRows)
	if e.way.handed {
		return codec.Rows{X: floatsOf(e.staged.there.Reshape(n, cols)), Cols: cols, Len: n}
	}
	if e.ops.Remote() {
		return codec.Rows{X: e.onHost().rows[:n*cols], Cols: cols, Len: n}
	}
	return codec.Rows{More: e.Sums(cols).Host(), Cols: cols, Len: n, Index: e.plan.SendRows}
}

// addReturned adds what has come in to own rows and to sums, which are zero
// before, in ascending order of ranks.
func (e *Exchange) addReturned(own kernels.Mat) {
	s, n, cols := &e.staged, len(e.plan.SendRows), own.Cols
	sums, packed := e.Sums(cols), s.there.Reshape(n, cols)
	e.ops.Clear(sums)
	if !e.way.handed {
		s.take(packed, s.rows[:n*cols])
	}
	for q := range e.plan.Parts {
		from, to := int(e.plan.SendStart[q]), int(e.plan.SendStart[q+1])
		e.ops.AddRows(own, sums, s.sendRows.Part(from, to), packed.Part(from, to))
	}
}
