package halo

import (
	"unsafe"

	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/internal/mapped"
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
	rows       []float32
	deviceRows kernels.Mat
	sendRows   kernels.Vector[uint32]
	crossing   kernels.Crossing
}

// allocStaging makes the room. Where Ops compute elsewhere that on the host is made when it
// is first asked for.
func (e *Exchange) allocStaging() {
	p, s, ghosts, buffers := e.plan, &e.staged, e.arena.For(Ghosts), e.arena.For(Buffers)
	e.sums = kernels.NewMat(e.ops, buffers, p.Sums, e.maxCols)
	if !e.ops.Remote() {
		s.ghosts = mapped.Make[float32](ghosts, p.Ghosts*e.maxCols)
		e.ghosts = kernels.PlaceMat(e.ops, ghosts, p.Ghosts, e.maxCols, s.ghosts)
		return
	}
	e.ghosts = kernels.NewMat(e.ops, ghosts, p.Ghosts, e.maxCols)
	s.deviceRows = kernels.NewMat(e.ops, buffers, len(p.SendRows), e.maxCols)
	s.sendRows = kernels.Place(e.ops, buffers, p.SendRows)
	s.crossing = kernels.CrossingOf(e.ops, e.arena)
}

// hostStaging makes the room on the host, unless it is there.
func (e *Exchange) hostStaging() *staged {
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

// waitCopies has memory of the host be free for an exchange, whose copies wait for what
// was called before.
func (s *staged) waitCopies() {
	s.crossing.Settle()
	s.crossing.Mark()
}

// copyToHost is ready, and sets dst, memory of the host, to x beside what is computed. It
// returns when that is there.
func (s *staged) copyToHost(dst []float32, x kernels.Mat) {
	s.waitCopies()
	s.crossing.Wait(s.crossing.Out(mapped.Bytes(dst), x.Address()))
}

// copyToDevice sets x to src, memory of the host that stands until ready.
func (s *staged) copyToDevice(x kernels.Mat, src []float32) {
	s.crossing.In(x.Address(), mapped.Bytes(src))
	s.crossing.Land()
}

// usesDeviceMemory reports whether the next way's rows are given to the communicator where Ops
// compute: it says that it takes them, and nobody else reads them. What a rank sends to
// itself the communicator would read.
func (e *Exchange) usesDeviceMemory() bool {
	aware, ok := e.comm.(comm.Aware)
	return ok && rowsOfRank(e.plan.SendStart, e.comm.Rank()) == 0 && e.ops.Remote() && e.observer == nil && e.transport == transport(e.direct) &&
		aware.DeviceMemory(4*e.maxCols*max(e.plan.Ghosts, len(e.plan.SendRows)))
}

// deviceFloats returns x as a communicator takes it, when all that was called before is done.
func (s *staged) deviceFloats(x kernels.Mat) []float32 {
	s.copyToHost(nil, x)
	return floatsOf(x)
}

// floatsOf are the elements of x as an address, which Go code must not follow where
// Ops compute elsewhere.
func floatsOf(x kernels.Mat) []float32 {
	return unsafe.Slice((*float32)(x.Address()), x.Rows*x.Cols)
}

// outgoingRows are the rows of x and of sums that go out.
func (e *Exchange) outgoingRows(x kernels.Mat) codec.Rows {
	n, cols := len(e.plan.SendRows), x.Cols
	rows := codec.Rows{Cols: cols, Len: n, IDs: e.sendIDs, Sums: e.sendSums}
	if !e.ops.Remote() {
		rows.X, rows.More, rows.Index = x.Host(), e.Sums(cols).Host(), e.plan.SendRows
		return rows
	}
	s := &e.staged
	packed := s.deviceRows.Reshape(n, cols)
	e.ops.PackRows(packed, s.sendRows, x, e.Sums(cols))
	if e.direction.onDevice {
		rows.X = s.deviceFloats(packed)
		return rows
	}
	rows.X = e.hostStaging().rows[:n*cols]
	s.copyToHost(rows.X, packed)
	return rows
}

// ghostDestination is where the rows of ghosts come in.
func (e *Exchange) ghostDestination(cols int) codec.Rows {
	n := e.plan.Ghosts
	if e.direction.onDevice {
		return codec.Rows{X: floatsOf(e.Ghosts(cols)), Cols: cols, Len: n}
	}
	return codec.Rows{X: e.hostStaging().ghosts[:n*cols], Cols: cols, Len: n}
}

// receivedGhosts are the ghosts [Ghosts x cols], whose rows have come in.
func (e *Exchange) receivedGhosts() kernels.Mat {
	ghosts := e.Ghosts(e.direction.in.Cols)
	if e.ops.Remote() && !e.direction.coded && !e.direction.onDevice {
		e.staged.copyToDevice(ghosts, e.direction.in.X)
	}
	return ghosts
}

// ghostGradients are the gradients of ghosts, which go out.
func (e *Exchange) ghostGradients(cols int) codec.Rows {
	n := e.plan.Ghosts
	rows := codec.Rows{Cols: cols, Len: n, IDs: e.plan.GhostIDs}
	if e.direction.onDevice {
		rows.X = e.staged.deviceFloats(e.Ghosts(cols))
		return rows
	}
	rows.X = e.hostStaging().ghosts[:n*cols]
	if e.ops.Remote() {
		e.staged.copyToHost(rows.X, e.Ghosts(cols))
	}
	return rows
}

// gradDestination is where gradients of own rows and of sums come in; those of own
// rows are known at the end.
func (e *Exchange) gradDestination(cols int) codec.Rows {
	n := len(e.plan.SendRows)
	if e.direction.onDevice {
		return codec.Rows{X: floatsOf(e.staged.deviceRows.Reshape(n, cols)), Cols: cols, Len: n}
	}
	if e.ops.Remote() {
		return codec.Rows{X: e.hostStaging().rows[:n*cols], Cols: cols, Len: n}
	}
	return codec.Rows{More: e.Sums(cols).Host(), Cols: cols, Len: n, Index: e.plan.SendRows}
}

// addReturned adds what has come in to own rows and to sums, which are zero
// before, in ascending order of ranks.
func (e *Exchange) addReturned(own kernels.Mat) {
	s, n, cols := &e.staged, len(e.plan.SendRows), own.Cols
	sums, packed := e.Sums(cols), s.deviceRows.Reshape(n, cols)
	e.ops.Clear(sums)
	if !e.direction.onDevice {
		s.copyToDevice(packed, s.rows[:n*cols])
	}
	for q := range e.plan.Parts {
		from, to := int(e.plan.SendStart[q]), int(e.plan.SendStart[q+1])
		e.ops.AddRows(own, sums, s.sendRows.Part(from, to), packed.Part(from, to))
	}
}
