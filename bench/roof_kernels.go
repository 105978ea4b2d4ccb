package bench

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"siafu/bench/machine"
	"siafu/graph"
	"siafu/kernels"
)

// kernelID is a kernel in a stage of an epoch.
type kernelID struct {
	epoch         int
	stage, kernel string
}

// demand is the time of a kernel in an epoch, summed over workers, and its least work.
type demand struct {
	seconds, calls float64
	multiplyAdds   float64
	exponentials   float64
	doubles        float64                          // exponentials of float64
	random         float64                          // numbers
	gathered       float64                          // rows
	withZeros      float64                          // multiplyAdds of a product that does not skip zeros
	terms          int                              // of a sum of a product, 0: many
	transposed     bool                             // the first operand of a product is
	columns        int                              // of vectors that are multiplied and added
	bytes          map[int]*[machine.Levels]float64 // by the bytes of a gathered row, 0: of operands; by level; empty: uncounted
}

// watch measures the kernels of all workers in an epoch. It times the epochs up to timed. It counts the work of
// the later ones, which takes time itself: the first of them fills the simulated caches.
type watch struct {
	timed   int
	sizes   [machine.Levels]int
	workers int
	mu      sync.Mutex // of the fields below, and of the workers' caches
	shared  caches
	packed  atomic.Int64 // rows
	demands map[kernelID]*demand
}

func newWatch(timed int, sizes [machine.Levels]int) *watch {
	return &watch{timed: timed, sizes: sizes, shared: caches{}, demands: map[kernelID]*demand{}}
}

// watchedWorker is the state of a worker.
type watchedWorker struct {
	*watch
	kernelID
	own caches
}

// wrap returns the Ops of a worker.
func (w *watch) wrap(o kernels.Ops) kernels.Ops {
	w.workers++
	return &watchedOps{o, &watchedWorker{watch: w, own: caches{}}}
}

// watchedOps measures the calls of kernels that dominate an epoch, and forwards all others.
type watchedOps struct {
	kernels.Ops
	worker *watchedWorker // nil: none has called yet
}

// Begin implements engine.Watcher.
func (o *watchedOps) Begin(kind string, epoch int) { o.worker.stage, o.worker.epoch = kind, epoch }

// Fork implements kernels.Ops.
func (o *watchedOps) Fork() kernels.Ops { return &watchedOps{Ops: o.Ops.Fork()} }

// Borrow implements kernels.Ops.
func (o *watchedOps) Borrow(owner kernels.Ops) {
	from := owner.(*watchedOps)
	o.worker = from.worker
	o.Ops.Borrow(from.Ops)
}

// run calls a kernel. count counts the work of the call, nil: unknown.
func (o *watchedOps) run(kernel string, call func(), count func(d *demand), operands ...kernels.Mat) {
	w := o.worker
	if w == nil || w.epoch == 0 {
		call()
		return
	}
	id := w.kernelID
	id.kernel = kernel
	w.mu.Lock()
	if w.demands[id] == nil {
		w.demands[id] = &demand{bytes: map[int]*[machine.Levels]float64{}}
	}
	d := w.demands[id]
	if w.epoch > w.timed && count != nil {
		count(d) // before the call, which may overwrite an operand
		for k, m := range operands {
			if k == 0 || m.Address() != operands[0].Address() {
				w.operand(d, m.Address(), m.Bytes())
			}
		}
	}
	w.mu.Unlock()
	start := time.Now()
	call()
	seconds := time.Since(start).Seconds()
	w.mu.Lock()
	d.seconds, d.calls = d.seconds+seconds, d.calls+1
	w.mu.Unlock()
}

// product runs a product of a, or of the rows of a and a2, with n columns. Zeros need no work.
func (o *watchedOps) product(kernel string, n int, call func(), dst, a, b, a2, b2 kernels.Mat) {
	terms := a.Cols + a2.Cols
	o.run(fmt.Sprintf("%s %d x %d", kernel, terms, n), call, func(d *demand) {
		d.columns, d.terms = n, terms
		if d.transposed = kernel == "MatMulTransA"; d.transposed { // the result may be computed transposed
			d.columns, d.terms = max(n, terms), 0
		}
		for _, m := range []kernels.Mat{a, a2} {
			nonZeros := m.Rows * m.Cols
			d.withZeros += float64(nonZeros * n)
			if !m.Half() {
				for _, v := range m.Host() {
					if v == 0 {
						nonZeros--
					}
				}
			}
			d.multiplyAdds += float64(nonZeros * n)
		}
	}, dst, a, b, a2, b2)
}

// MatMul implements kernels.Ops, as do the methods below.
func (o *watchedOps) MatMul(dst, a, b kernels.Mat, add bool) {
	o.product("MatMul", b.Cols, func() { o.Ops.MatMul(dst, a, b, add) }, dst, a, b, kernels.Mat{}, kernels.Mat{})
}

func (o *watchedOps) MatMulTransA(dst, a, b kernels.Mat, add bool) {
	o.product("MatMulTransA", b.Cols, func() { o.Ops.MatMulTransA(dst, a, b, add) }, dst, a, b, kernels.Mat{}, kernels.Mat{})
}

func (o *watchedOps) MatMulTransB(dst, a, b kernels.Mat, add bool) {
	o.product("MatMulTransB", b.Rows, func() { o.Ops.MatMulTransB(dst, a, b, add) }, dst, a, b, kernels.Mat{}, kernels.Mat{})
}

func (o *watchedOps) MatMulBiasReLUDropout(dst, a, b, bias kernels.Mat, relu bool, drop *kernels.Dropout) {
	fused := func() { o.Ops.MatMulBiasReLUDropout(dst, a, b, bias, relu, drop) }
	o.product("MatMul", b.Cols, fused, dst, a, b, kernels.Mat{}, kernels.Mat{})
}

func (o *watchedOps) GradThrough(h, a, b, a2, b2 kernels.Mat, drop *kernels.Dropout) {
	o.product("GradThrough", b.Rows, func() { o.Ops.GradThrough(h, a, b, a2, b2, drop) }, h, a, b, a2, b2)
}

// dropout returns the number of n elements that dropout, which may be none, keeps, and of its random numbers.
func dropout(drop *kernels.Dropout, n int) (kept, random float64) {
	if drop == nil || drop.P == 0 {
		return float64(n), 0
	}
	return float64(n) * (1 - float64(drop.P)), float64(n)
}

// pass runs a kernel with one pass over its operands. drop is the dropout of which it computes the mask, or nil.
func (o *watchedOps) pass(kernel string, call func(), drop *kernels.Dropout, operands ...kernels.Mat) {
	o.run(fmt.Sprintf("%s x %d", kernel, operands[0].Cols), call, func(d *demand) {
		_, random := dropout(drop, operands[0].Rows*operands[0].Cols)
		d.random += random
	}, operands...)
}

func (o *watchedOps) BiasReLUDropout(dst, z, bias kernels.Mat, relu bool, drop *kernels.Dropout) {
	o.pass("BiasReLUDropout", func() { o.Ops.BiasReLUDropout(dst, z, bias, relu, drop) }, drop, dst, z)
}

func (o *watchedOps) BiasReLUDropoutGrad(dst, bias, g, h kernels.Mat, relu bool, drop *kernels.Dropout) {
	operands := []kernels.Mat{dst, g}
	if relu || drop != nil {
		operands = append(operands, h)
	}
	o.pass("BiasReLUDropoutGrad", func() { o.Ops.BiasReLUDropoutGrad(dst, bias, g, h, relu, drop) }, nil, operands...)
}

func (o *watchedOps) BiasELUDropout(dst, z, bias kernels.Mat, drop *kernels.Dropout) {
	o.run(fmt.Sprintf("BiasELUDropout x %d", z.Cols), func() { o.Ops.BiasELUDropout(dst, z, bias, drop) }, func(d *demand) {
		negative := 0
		for i, v := range z.Host() {
			if !bias.IsNil() {
				v += bias.Host()[i%z.Cols]
			}
			if v < 0 {
				negative++
			}
		}
		kept, _ := dropout(drop, negative)
		_, random := dropout(drop, z.Rows*z.Cols)
		d.exponentials, d.random = d.exponentials+kept, d.random+random
	}, dst, z)
}

func (o *watchedOps) BiasELUDropoutGrad(dst, bias, g, h kernels.Mat, drop *kernels.Dropout) {
	o.pass("BiasELUDropoutGrad", func() { o.Ops.BiasELUDropoutGrad(dst, bias, g, h, drop) }, nil, dst, g, h)
}

func (o *watchedOps) ColumnSums(dst, g kernels.Mat, add bool) {
	o.pass("ColumnSums", func() { o.Ops.ColumnSums(dst, g, add) }, nil, g)
}

func (o *watchedOps) Add(dst, x kernels.Mat) {
	o.pass("Add", func() { o.Ops.Add(dst, x) }, nil, dst, x)
}

func (o *watchedOps) RowDots(dst, x, y kernels.Mat) {
	o.pass("RowDots", func() { o.Ops.RowDots(dst, x, y) }, nil, x, y)
}

func (o *watchedOps) DropoutRows(dst, x kernels.Mat, drop *kernels.Dropout) {
	o.pass("DropoutRows", func() { o.Ops.DropoutRows(dst, x, drop) }, drop, dst, x)
}

func (o *watchedOps) SoftmaxCrossEntropy(grad, logits kernels.Mat, labels kernels.Vector[int32], split kernels.Vector[uint8], want uint8,
	scale float32) (loss float64, rows int64) {
	o.run(fmt.Sprintf("SoftmaxCrossEntropy x %d", logits.Cols), func() {
		loss, rows = o.Ops.SoftmaxCrossEntropy(grad, logits, labels, split, want, scale)
	}, func(d *demand) {
		for r, s := range split.Host() {
			if s == want && labels.Host()[r] != graph.Unlabelled {
				d.doubles += float64(logits.Cols)
			}
		}
	}, grad)
	return loss, rows
}

// source has rows of bytes, stride bytes apart, for a fraction of the edges.
type source struct {
	at            uintptr
	stride, bytes int
	fraction      float64
}

// rowsOf returns a source of the rows of m for all edges.
func rowsOf(m kernels.Mat) source {
	stride := m.Bytes() / max(m.Rows, 1)
	return source{uintptr(m.Address()), stride, stride, 1}
}

// gather runs a kernel that reads rows of sources along edges. count counts its further work for a number of rows of
// each source.
func (o *watchedOps) gather(kernel string, columns int, call func(), e kernels.Edges, sources []source, count func(d *demand, n int),
	operands ...kernels.Mat) {
	kernel = fmt.Sprintf("%s x %d", kernel, columns)
	if e.Coded != nil {
		o.run(kernel, call, nil)
		return
	}
	o.run(kernel, call, func(d *demand) {
		w, begin, end, cols, indices, n := o.worker, e.Begin.Host(), e.End.Host(), e.Cols.Host(), 0, 0
		read := func(c uint32) {
			n++
			for _, s := range sources {
				if int(s.fraction*float64(n)) > int(s.fraction*float64(n-1)) {
					d.reads(s.bytes)[w.level(s.at+uintptr(c-e.Base)*uintptr(s.stride), s.bytes)] += float64(s.bytes)
				}
			}
		}
		for r := range begin {
			if e.SelfLoops {
				read(e.First + uint32(r))
			}
			if e.RowMask != nil && !isSelected(e.RowMask, e.First+uint32(r)) {
				continue
			}
			indices += int(end[r] - begin[r])
			for _, c := range cols[begin[r]:end[r]] {
				if e.ColumnMask == nil || isSelected(e.ColumnMask, c) {
					read(c)
				}
			}
		}
		if indices > 0 {
			w.operand(d, e.Cols.From(int(begin[0])).Address(), 4*indices)
		}
		w.operand(d, e.Begin.Address(), e.Begin.Bytes())
		w.operand(d, e.End.Address(), e.End.Bytes())
		d.columns, d.gathered = columns, d.gathered+float64(n)
		count(d, n)
	}, operands...)
}

func isSelected(m kernels.VertexMask, v uint32) bool { return m[v/32]>>(v%32)&1 != 0 }

func (o *watchedOps) SpMM(dst kernels.Mat, e kernels.Edges, x kernels.Mat, add bool) {
	o.gather("SpMM", x.Cols, func() { o.Ops.SpMM(dst, e, x, add) }, e, []source{rowsOf(x)},
		func(d *demand, n int) { d.multiplyAdds += float64(n * x.Cols) }, dst)
}

func (o *watchedOps) Pack(p kernels.Packed, lo int, x kernels.Mat) (kept int) {
	o.run(fmt.Sprintf("Pack x %d", x.Cols), func() { kept = o.Ops.Pack(p, lo, x) }, func(*demand) {
		o.worker.packed.Store(max(o.worker.packed.Load(), int64(lo+x.Rows)))
	}, x)
	return kept
}

// SpMMPacked counts the mean non-zeros of a row, which begins at the multiple of its width.
func (o *watchedOps) SpMMPacked(dst kernels.Mat, e kernels.Edges, p kernels.Packed, kept int64, add bool) {
	values := int(kept / max(o.worker.packed.Load(), 1))
	o.gather("SpMMPacked", dst.Cols, func() { o.Ops.SpMMPacked(dst, e, p, kept, add) }, e,
		[]source{{0, 4 * dst.Cols, max(4*values/lineBytes, 1) * lineBytes, 1}},
		func(d *demand, n int) { d.multiplyAdds += float64(n * values) }, dst)
}

// SpMMLists is not counted, because lists hide their non-zeros.
func (o *watchedOps) SpMMLists(dst kernels.Mat, e kernels.Edges, l kernels.Lists, add bool) {
	o.run(fmt.Sprintf("SpMMLists x %d", dst.Cols), func() { o.Ops.SpMMLists(dst, e, l, add) }, nil)
}

func (o *watchedOps) MaxGather(dst, arg kernels.Mat, e kernels.Edges, x kernels.Mat, ids kernels.Vector[uint32], merge bool) {
	o.gather("MaxGather", x.Cols, func() { o.Ops.MaxGather(dst, arg, e, x, ids, merge) }, e, []source{rowsOf(x)},
		func(*demand, int) {}, dst, arg)
}

func (o *watchedOps) MaxGatherGrad(dst kernels.Mat, e kernels.Edges, arg, g kernels.Mat, first int) {
	o.gather("MaxGatherGrad", g.Cols, func() { o.Ops.MaxGatherGrad(dst, e, arg, g, first) }, e, []source{rowsOf(arg)},
		func(*demand, int) {}, dst, g)
}

// sparse runs a product with sparse rows, which reads a row of x for each non-zero that dropout keeps.
func (o *watchedOps) sparse(kernel string, call func(), offsets kernels.Vector[int64], index kernels.Vector[uint32],
	values kernels.Vector[float32], drop *kernels.Dropout, dst, x kernels.Mat) {
	rows, from := offsets.Len()-1, rowsOf(x)
	from.fraction, _ = dropout(drop, 1)
	e := kernels.Edges{Begin: offsets.Part(0, rows), End: offsets.Part(1, rows+1), Cols: index}
	o.gather(kernel, x.Cols, call, e, []source{from}, func(d *demand, n int) {
		kept, random := dropout(drop, n)
		d.multiplyAdds, d.random = d.multiplyAdds+kept*float64(x.Cols), d.random+random
		d.terms = max(int(kept)/max(rows, 1), 1)
		o.worker.operand(d, values.From(int(offsets.Host()[0])).Address(), 4*n)
	}, dst)
}

func (o *watchedOps) SparseMatMul(dst kernels.Mat, xs kernels.Sparse, w kernels.Mat, drop *kernels.Dropout) {
	o.sparse("SparseMatMul", func() { o.Ops.SparseMatMul(dst, xs, w, drop) }, xs.Offsets, xs.Cols, xs.Vals, drop, dst, w)
}

func (o *watchedOps) SparseMatMulTransA(dst kernels.Mat, xt *kernels.Transposed, g kernels.Mat, drop *kernels.Dropout) {
	o.sparse("SparseMatMulTransA", func() { o.Ops.SparseMatMulTransA(dst, xt, g, drop) }, xt.Offsets, xt.Rows, xt.Vals, drop, dst, g)
}

// attend runs a kernel that reads the columns of values and all of scores along each edge, and computes an exponential
// for each head. It multiplies the columns times times, and once more for dynamic scores.
func (o *watchedOps) attend(kernel string, a kernels.Attention, times int, call func(), e kernels.Edges, values, scores kernels.Mat,
	operands ...kernels.Mat) {
	if a.Dynamic {
		times++
	}
	sources := []source{rowsOf(values)}
	sources[0].bytes = 4 * a.Columns()
	if !scores.IsNil() {
		sources = append(sources, rowsOf(scores))
	}
	o.gather(fmt.Sprintf("%s %d", kernel, a.Heads), a.Width, call, e, sources, func(d *demand, n int) {
		d.multiplyAdds, d.exponentials = d.multiplyAdds+float64(n*times*a.Columns()), d.exponentials+float64(n*a.Heads)
	}, operands...)
}

func (o *watchedOps) AttentionGather(a kernels.Attention, dst, signed, stats kernels.Mat, e kernels.Edges, x kernels.Emitted, r kernels.Mat,
	merge bool) {
	o.attend("AttentionGather", a, 1+min(signed.Cols, 1), func() { o.Ops.AttentionGather(a, dst, signed, stats, e, x, r, merge) },
		e, x.X, x.Scores, dst, signed)
}

func (o *watchedOps) AttentionGradDst(a kernels.Attention, dr, along kernels.Mat, e kernels.Edges, x kernels.Emitted, back kernels.Attended,
	add bool) {
	o.attend("AttentionGradDst", a, 1, func() { o.Ops.AttentionGradDst(a, dr, along, e, x, back, add) },
		e, x.X, x.Scores, dr, along, back.Grad)
}

func (o *watchedOps) AttentionGradSrc(a kernels.Attention, dst kernels.Mat, e kernels.Edges, first, own int, x kernels.Mat,
	back kernels.Attended) {
	scores := back.Packed
	if a.Dynamic {
		scores = back.R // longer than the rest, which is packed
	}
	o.attend("AttentionGradSrc", a, 2, func() { o.Ops.AttentionGradSrc(a, dst, e, first, own, x, back) }, e, back.Grad, scores, dst, x)
}
