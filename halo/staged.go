package halo

import (
	"unsafe"

	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// staged holds rows in transit between the rank's Ops and the transports, which work on host
// memory. If Ops compute on the host, ghosts are the exchange's own matrix: sent rows are
// read, and received gradients added, in place. Otherwise Ops pack and add on the device, and
// only boundary rows are copied to or from the host, during computation.
type staged struct {
	ghosts []float32 // [Ghosts x maxCols]
	// nil and empty without a device; [len(SendRows) x maxCols]
	rows       []float32
	deviceRows kernels.Mat
	sendRows   kernels.Vector[uint32]
	copier     kernels.Copier
}

// allocStaging allocates the buffers. With a device, host memory is allocated on first use.
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
	s.copier = e.ops.Copier(e.arena)
}

// hostStaging allocates the host memory on first use.
func (e *Exchange) hostStaging() *staged {
	s := &e.staged
	if s.ghosts == nil {
		ghosts := mapped.MakeApart(e.arena.For(Ghosts), 4*e.plan.Ghosts*e.maxCols)
		rows := mapped.MakeApart(e.arena.For(Buffers), 4*len(e.plan.SendRows)*e.maxCols)
		s.ghosts, s.rows = mapped.Cast[float32](ghosts), mapped.Cast[float32](rows)
		s.copier.Pin(ghosts)
		s.copier.Pin(rows)
	}
	return s
}

// waitCopies waits until the host memory is free for an exchange. Its copies are ordered after
// earlier calls.
func (s *staged) waitCopies() {
	s.copier.Settle()
	s.copier.Mark()
}

// copyToHost waits for earlier copies, and copies x to dst in host memory during computation.
// It returns when the copy is done.
func (s *staged) copyToHost(dst []float32, x kernels.Mat) {
	s.waitCopies()
	s.copier.Wait(s.copier.StartDownload(mapped.Bytes(dst), x.Address()))
}

// copyToDevice copies src in host memory to x. src must stay unchanged until waitCopies.
func (s *staged) copyToDevice(x kernels.Mat, src []float32) {
	s.copier.StartUpload(x.Address(), mapped.Bytes(src))
	s.copier.AwaitUploads()
}

// usesDeviceMemory reports whether the communicator gets the next direction's rows in device
// memory: it must accept them, and nothing else may read them. The communicator would read
// rows that a rank sends to itself.
func (e *Exchange) usesDeviceMemory() bool {
	aware, ok := e.comm.(comm.Aware)
	return ok && rowsOfRank(e.plan.SendStart, e.comm.Rank()) == 0 && e.ops.Remote() && e.observer == nil &&
		e.transport == transport(e.direct) &&
		aware.DeviceMemory(4*e.maxCols*max(e.plan.Ghosts, len(e.plan.SendRows)))
}

// deviceFloats waits for earlier kernels, and returns x for the communicator.
func (s *staged) deviceFloats(x kernels.Mat) []float32 {
	s.copyToHost(nil, x)
	return floatsOf(x)
}

// floatsOf returns the elements of x as an address. Go code must not dereference it if it is
// device memory.
func floatsOf(x kernels.Mat) []float32 {
	return unsafe.Slice((*float32)(x.Address()), x.Rows*x.Cols)
}

// outgoingRows returns the rows of x and of sums to send.
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

// ghostDestination returns the destination of received ghost rows.
func (e *Exchange) ghostDestination(cols int) codec.Rows {
	rows := codec.Rows{Cols: cols, Len: e.plan.Ghosts}
	if e.direction.onDevice {
		rows.X = floatsOf(e.Ghosts(cols))
	} else {
		rows.X = e.hostStaging().ghosts[:rows.Len*cols]
	}
	return rows
}

// receivedGhosts returns the received ghosts [Ghosts x cols].
func (e *Exchange) receivedGhosts() kernels.Mat {
	ghosts := e.Ghosts(e.direction.in.Cols)
	if e.ops.Remote() && !e.direction.coded && !e.direction.onDevice {
		e.staged.copyToDevice(ghosts, e.direction.in.X)
	}
	return ghosts
}

// ghostGradients returns the gradients of ghosts, to send.
func (e *Exchange) ghostGradients(cols int) codec.Rows {
	rows := e.ghostDestination(cols)
	rows.IDs = e.plan.GhostIDs
	switch {
	case e.direction.onDevice:
		e.staged.copyToHost(nil, e.Ghosts(cols)) // waits for earlier kernels
	case e.ops.Remote():
		e.staged.copyToHost(rows.X, e.Ghosts(cols))
	}
	return rows
}

// gradDestination returns the destination of gradients of own rows and of sums. The matrix of
// own rows is known only at the end.
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

// addReturned adds received gradients to own rows and to sums, which are zero before, in
// ascending order of ranks.
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
