package cuda

import (
	"siafu/cuda/device"
	"siafu/kernels"
)

// SpMM implements kernels.Ops. dst must not overlap x.
func (o *Ops) SpMM(dst kernels.Mat, e kernels.Edges, x kernels.Mat, add bool) {
	rows := e.Rows()
	mustFit(dst.Rows == rows && dst.Cols == x.Cols && !dst.Half() && e.Weights.Len() == 0 && e.End.Len() >= rows &&
		(e.RowScale.Len() == 0 || e.RowScale.Len() >= rows))
	if rows == 0 || dst.Cols == 0 {
		return
	}
	p := o.planOf(matrix{vectorPtr(e.Begin), vectorPtr(e.End), rows}, e.Cols)
	from, padded := operand{matPtr(x), x.Cols}, 0
	if wide := paddedColumns(x); e.Cols.Len() >= readsToPad*x.Rows && wide > x.Cols {
		from.stride, padded = wide, blocks(x.Rows*wide*elementSize(x), 4)
	}
	parts := device.Ptr(0)
	if floats := padded + p.pieces*dst.Cols; floats > 0 {
		scratch := o.scratchFloats(floats)
		defer o.releaseScratch()
		parts = scratch + device.Ptr(4*padded)
		if padded > 0 {
			from.at = scratch
			count := x.Rows * from.stride
			o.launch(kernelFor("pad", x), launch1D(count),
				o.newArgs().Ptr(from.at).Ptr(matPtr(x)).Int64(int64(count)).Int32(int32(x.Cols)).Int32(int32(from.stride)))
		}
	}
	o.gather(matPtr(dst), e, x, from, rowRange{p.order, vectorPtr(e.Begin), vectorPtr(e.End), p.rows}, add)
	if p.cut == 0 {
		return
	}
	pieces := e
	pieces.RowScale, pieces.SelfLoops = kernels.Vector[float32]{}, false
	o.gather(parts, pieces, x, from, rowRange{0, p.begin, p.end, p.pieces}, false)
	count := p.cut * dst.Cols
	o.launch(kernelFor("spmmHubs", x), launch1D(count),
		o.newArgs().Ptr(matPtr(dst)).Ptr(parts).Ptr(p.hubs).Ptr(p.firsts).Int64(int64(count)).
			Uint32(e.Base).Ptr(vectorPtr(e.RowScale)).Ptr(vectorPtr(e.ColScale)).Int32(flag(e.SelfLoops)).Uint32(e.First).
			Ptr(matPtr(x)).Int32(int32(dst.Cols)).Int32(flag(add)))
}

// operand is where a gather reads the rows of a matrix, whose starts are stride elements apart.
type operand struct {
	at     device.Ptr
	stride int
}

// Narrow rows whose width prevents loads of four columns are copied to padded rows of whole sectors, the
// units of device memory, if edges read a row at least readsToPad times. The copy costs about two of these
// reads.
const (
	sectorBytes = 32
	readsToPad  = 8
	widestToPad = 128
)

// paddedColumns returns the columns of padded rows of x, and those of x if rows need no copy.
func paddedColumns(x kernels.Mat) int {
	if vectorWidth(x.Cols, matPtr(x), elementSize(x)) == maxVector || x.Cols <= maxVector || x.Cols > widestToPad {
		return x.Cols
	}
	sector := sectorBytes / elementSize(x)
	return blocks(x.Cols, sector) * sector
}

// rowRange has rows of a matrix, by their order and bounds.
type rowRange struct {
	order, begin, end device.Ptr
	count             int
}

// sliceColumns is the part of a row that a gather's blocks read before other blocks read the next part: the
// parts of a graph's rows then stay in the second-level cache longer than whole rows.
const sliceColumns = 64

// gather calls the kernel for rows. x has the width and the elements of from.
func (o *Ops) gather(dst device.Ptr, e kernels.Edges, x kernels.Mat, from operand, r rowRange, add bool) {
	v := vectorWidth(from.stride, from.at, elementSize(x))
	slice := min(sliceColumns, x.Cols)
	size := groupSize(blocks(slice, v))
	l := launchGroups(r.count, size)
	l.Grid[1] = blocks(x.Cols, slice)
	o.launch(productKernel("spmm", x)+string('0'+rune(v)), l, o.newArgs().Ptr(dst).Ptr(r.begin).Ptr(r.end).Ptr(vectorPtr(e.Cols)).
		Ptr(r.order).Int64(int64(r.count)).Uint32(e.Base).Ptr(vectorPtr(e.RowScale)).Ptr(vectorPtr(e.ColScale)).
		Int32(flag(e.SelfLoops)).Uint32(e.First).Ptr(from.at).Int32(int32(from.stride)).Int32(int32(x.Cols)).Int32(int32(slice)).
		Int32(flag(add)).Int32(int32(size)))
}

// maxVector is the largest number of adjacent elements loaded at once.
const maxVector = 4

// vectorWidth returns the number of adjacent elements loaded at once of rows at a stride.
func vectorWidth(stride int, at device.Ptr, element int) int {
	for v := maxVector; v > 1; v /= 2 {
		if stride%v == 0 && int(at)%(v*element) == 0 {
			return v
		}
	}
	return 1
}

// elementSize returns the bytes of an element of x.
func elementSize(x kernels.Mat) int {
	if x.Half() {
		return 2
	}
	return 4
}

// kernelFor returns the kernel of that name for the elements of m.
func kernelFor(name string, m kernels.Mat) string {
	if m.Half() {
		return name + "Half"
	}
	return name + "Float"
}
