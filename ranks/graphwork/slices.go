package graphwork

import (
	"siafu/kernels"
	"siafu/kernels/model"
)

// slicedRows have the memory of gathers by slices of columns. Rows, whose own memory may be in a file,
// are copied slice by slice to the window, which gathers read at random. Each slice reads the edges
// again. The order of additions, and so each sum's bits, are those of a gather of all columns.
type slicedRows struct {
	window kernels.Mat   // [own x columns of a slice], rounded to bfloat16 with Options.Half
	sums   []kernels.Mat // of all slices but the last [own x columns of a slice]
}

// allocSlices allocates the memory for the slices of all layers.
func (w *Work) allocSlices() {
	if !w.sliced.window.IsNil() {
		return
	}
	columns, count := 0, 0
	for l := range w.layers {
		if bounds := w.store.Slices(l); bounds != nil {
			columns, count = max(columns, bounds[1]), max(count, len(bounds)-1)
		}
	}
	own, window := w.shard.NumOwn(), w.arena.For(Window)
	if w.half {
		w.sliced.window = kernels.NewHalf(w.ops, window, own, columns, kernels.HalfSlack)
	} else {
		w.sliced.window = kernels.NewMat(w.ops, window, own, columns)
	}
	for range count - 1 {
		w.sliced.sums = append(w.sliced.sums, w.newZeros(SliceSums, own, columns))
	}
}

// Slices returns the number of slices in which l gathers, 0 if it gathers all columns at once.
func (l *Layer) Slices() int { return max(len(l.slices)-1, 0) }

// slice returns the first column and the number of columns of slice k.
func (l *Layer) slice(k int) (from, cols int) { return l.slices[k], l.slices[k+1] - l.slices[k] }

// sliceOf returns the interval's rows of a matrix that has cols columns of all own vertices.
func (i Interval) sliceOf(x kernels.Mat, cols int) kernels.Mat {
	return i.rows(x.Reshape(x.Rows, cols))
}

// sliceSums returns the sums of slice k, which is not the last one [own x columns of the slice].
func (l *Layer) sliceSums(k int) kernels.Mat {
	_, cols := l.slice(k)
	return l.sums[k].Reshape(l.sums[k].Rows, cols)
}

// LoadSlice copies slice k of the interval's emitted rows, to be gathered when all intervals have done so.
func (w *Work) LoadSlice(l *Layer, i Interval, k int) { w.load(l, i, k, l.Rows, l.mesh.col) }

// LoadSliceBackward is LoadSlice for the gradients of gathered rows.
func (w *Work) LoadSliceBackward(l *Layer, i Interval, k int) { w.load(l, i, k, l.Grads, l.mesh.row) }

func (w *Work) load(l *Layer, i Interval, k int, rows kernels.Mat, scale kernels.Vector[float32]) {
	from, cols := l.slice(k)
	dst := i.sliceOf(w.sliced.window, cols)
	if !w.half {
		i.Ops.CopyColumns(dst, i.rows(rows), from)
		return
	}
	columns := i.Frame.Spare(cols)
	i.Ops.CopyColumns(columns, i.rows(rows), from)
	i.Ops.Narrow(dst, columns, i.scale(scale))
}

// GatherSlice gathers slice k, which is not the last one. GatherOwn completes the rows.
func (w *Work) GatherSlice(l *Layer, i Interval, k int, p model.Pass) {
	w.gatherSlice(l, i, k, l.forwardEdges(i, p))
}

// GatherSliceBackward is GatherSlice for gradients. GatherBackward completes them.
func (w *Work) GatherSliceBackward(l *Layer, i Interval, k int) {
	w.gatherSlice(l, i, k, l.backwardEdges(i))
}

func (w *Work) gatherSlice(l *Layer, i Interval, k int, m kernels.Edges) {
	w.gatherWindow(l, i, i.rows(l.sliceSums(k)), m)
}

// gatherWindow gathers the columns in the window.
func (w *Work) gatherWindow(l *Layer, i Interval, dst kernels.Mat, m kernels.Edges) {
	window := w.sliced.window.Reshape(w.sliced.window.Rows, dst.Cols)
	m.Whole = l.Width
	if w.half {
		spmm(i.Ops, dst, m, kernels.Mat{}, window, false)
		return
	}
	spmm(i.Ops, dst, m, window, kernels.Mat{}, false)
}

// gatherLastSlice gathers the last slice, and puts the sums of all slices together in dst.
func (w *Work) gatherLastSlice(l *Layer, i Interval, m kernels.Edges, dst kernels.Mat) {
	last := l.Slices() - 1
	from, cols := l.slice(last)
	sums := i.Frame.Spare(cols)
	w.gatherWindow(l, i, sums, m)
	i.Ops.PutColumns(dst, from, sums)
	for k := range last {
		from, _ := l.slice(k)
		i.Ops.PutColumns(dst, from, i.rows(l.sliceSums(k)))
	}
}
