package graphwork

import (
	"siafu/kernels"
	"siafu/kernels/model"
)

// sliced is the form of a matrix that gathers of own rows read by slices of columns. The order of
// additions, and so each sum's bits, are those of a gather of all columns.
type sliced struct {
	plain
	memory *sliceMemory
	bounds []int                   // of the slices
	scale  kernels.Vector[float32] // of columns
}

// sliceMemory is shared by all layers. Rows, whose own memory may be in a file, are copied slice by slice
// to the window, which gathers read at random. Each slice reads the edges again.
type sliceMemory struct {
	half   bool          // whether the window is rounded to bfloat16
	window kernels.Mat   // [own x columns of a slice]
	sums   []kernels.Mat // of all slices but the last [own x columns of a slice]
}

// sliceMemory returns the memory for the slices of all layers. The first call allocates it.
func (w *Work) sliceMemory() *sliceMemory {
	if w.slices != nil {
		return w.slices
	}
	columns, count := 0, 0
	for l := range w.layers {
		if bounds := w.store.Slices(l); bounds != nil {
			columns, count = max(columns, bounds[1]), max(count, len(bounds)-1)
		}
	}
	own, arena := w.shard.NumOwn(), w.arena.For(Window)
	w.slices = &sliceMemory{half: w.half}
	if w.half {
		w.slices.window = kernels.NewHalf(w.ops, arena, own, columns, kernels.HalfSlack)
	} else {
		w.slices.window = kernels.NewMat(w.ops, arena, own, columns)
	}
	for range count - 1 {
		w.slices.sums = append(w.slices.sums, w.newZeros(SliceSums, own, columns))
	}
	return w.slices
}

// columns returns the first column and the number of columns of slice k.
func (s *sliced) columns(k int) (from, cols int) { return s.bounds[k], s.bounds[k+1] - s.bounds[k] }

// last returns the number of the last slice.
func (s *sliced) last() int { return len(s.bounds) - 2 }

// sums returns the sums of slice k, which is not the last one [own x columns of the slice].
func (s *sliced) sums(k int) kernels.Mat {
	_, cols := s.columns(k)
	return s.memory.sums[k].Reshape(s.memory.sums[k].Rows, cols)
}

// LoadSlice copies slice k of the interval's emitted rows, or with back of its gradients of gathered rows,
// to be gathered when all intervals have done so.
func (l *Layer) LoadSlice(i Interval, k int, back bool) {
	s := l.Gather.(*sums)
	if back {
		s.grads.(*sliced).load(i, k, l.Grads)
	} else {
		s.own.(*sliced).load(i, k, l.Rows)
	}
}

func (s *sliced) load(i Interval, k int, x kernels.Mat) {
	from, cols := s.columns(k)
	dst := i.rows(s.memory.window.Reshape(s.memory.window.Rows, cols))
	if !s.memory.half {
		i.Ops.CopyColumns(dst, i.rows(x), from)
		return
	}
	columns := i.Frame.Spare(cols)
	i.Ops.CopyColumns(columns, i.rows(x), from)
	i.Ops.Narrow(dst, columns, i.scale(s.scale))
}

// GatherSlice gathers slice k, which is not the last one. GatherOwn, or with back GatherBackward, completes
// the rows.
func (l *Layer) GatherSlice(i Interval, k int, p model.Pass, back bool) {
	s := l.Gather.(*sums)
	rows := s.own.(*sliced) // gradients have the same slices and memory
	rows.gatherWindow(i, i.rows(rows.sums(k)), s.ownEdges(i, p, back))
}

// gatherWindow gathers the columns in the window.
func (s *sliced) gatherWindow(i Interval, dst kernels.Mat, m kernels.Edges) {
	m.Whole = s.bounds[len(s.bounds)-1]
	if s.memory.half { // it includes the scale
		m.ColScale = kernels.Vector[float32]{}
	}
	i.Ops.SpMM(dst, m, s.memory.window.Reshape(s.memory.window.Rows, dst.Cols), false)
}

// gatherOwn gathers the last slice, and puts the sums of all slices together in dst.
func (s *sliced) gatherOwn(i Interval, dst kernels.Mat, m kernels.Edges, _ kernels.Mat) {
	from, cols := s.columns(s.last())
	sums := i.Frame.Spare(cols)
	s.gatherWindow(i, sums, m)
	i.Ops.PutColumns(dst, from, sums)
	for k := range s.last() {
		from, _ := s.columns(k)
		i.Ops.PutColumns(dst, from, i.rows(s.sums(k)))
	}
}
