package bench

import (
	"fmt"
	"sync"
	"time"
	"unsafe"

	"siafu/bench/machine"
	"siafu/graph"
	"siafu/kernels"
)

// demand is the time of a kernel in an epoch, summed over workers, and its least work.
type demand struct {
	seconds, calls float64
	multiplyAdds   float64
	exponentials   float64
	withZeros      float64                         // multiplyAdds of a product that does not skip zeros
	terms          int                             // of a sum of a product, 0: many
	transposed     bool                            // the first operand of a product is
	columns        int                             // of vectors that are multiplied and added
	operands       [machine.Levels]float64         // bytes by the level from which they come
	rows           map[int][machine.Levels]float64 // bytes of gathered rows, by the bytes of a row
}

// add adds the work of another worker.
func (d *demand) add(o *demand) {
	d.seconds, d.calls = d.seconds+o.seconds, d.calls+o.calls
	d.multiplyAdds, d.withZeros = d.multiplyAdds+o.multiplyAdds, d.withZeros+o.withZeros
	d.exponentials += o.exponentials
	d.columns, d.terms, d.transposed = max(d.columns, o.columns), max(d.terms, o.terms), d.transposed || o.transposed
	for k, bytes := range o.operands {
		d.operands[k] += bytes
	}
	for width, bytes := range o.rows {
		d.addRows(width, bytes)
	}
}

func (d *demand) addRows(width int, bytes [machine.Levels]float64) {
	if d.rows == nil {
		d.rows = map[int][machine.Levels]float64{}
	}
	sum := d.rows[width]
	for k, b := range bytes {
		sum[k] += b
	}
	d.rows[width] = sum
}

// kernelID is a kernel in a stage of an epoch.
type kernelID struct {
	epoch         int
	stage, kernel string
}

// watch measures the kernels of all workers in an epoch. It times the epochs up to timed. It counts the work of
// the later ones, which takes time itself: the first of them fills the simulated caches.
type watch struct {
	timed   int
	sizes   [machine.Levels]int
	mu      sync.Mutex // of all and of workers
	all     *caches
	workers []*watchedWorker
}

// watchedWorker is the state of a worker.
type watchedWorker struct {
	*watch
	kernelID
	demands map[kernelID]*demand
	own     *caches
}

// wrap returns the Ops of a worker.
func (w *watch) wrap(o kernels.Ops) kernels.Ops {
	one := &watchedWorker{watch: w, demands: map[kernelID]*demand{}, own: newCaches()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.workers = append(w.workers, one)
	return &watchedOps{o, one}
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

// run calls a kernel. count counts the work of the call.
func (o *watchedOps) run(kernel string, call func(), count func(d *demand), operands ...kernels.Mat) {
	w := o.worker
	if w == nil || w.epoch == 0 {
		call()
		return
	}
	counted := w.epoch > w.timed
	d := &demand{}
	if counted {
		w.mu.Lock()
		count(d) // before the call, which may overwrite an operand
		for k, m := range operands {
			if k == 0 || m.Address() != operands[0].Address() {
				w.operand(d, m.Address(), m.Bytes())
			}
		}
		w.mu.Unlock()
	}
	start := time.Now()
	call()
	d.seconds, d.calls = time.Since(start).Seconds(), 1
	id := w.kernelID
	id.kernel = kernel
	if w.demands[id] == nil {
		w.demands[id] = &demand{}
	}
	w.demands[id].add(d)
}

// operand counts the bytes of an operand. The watch must be locked.
func (w *watchedWorker) operand(d *demand, at unsafe.Pointer, bytes int) {
	if bytes > 0 {
		d.operands[operandLevel(w.own, w.all, w.sizes, uintptr(at), bytes)] += float64(bytes)
	}
}

// product counts the products of the rows of a, of which zeros need none, with n columns.
func (d *demand) product(a kernels.Mat, n int) {
	zeros := 0
	if !a.Half() {
		for _, v := range a.Host() {
			if v == 0 {
				zeros++
			}
		}
	}
	d.columns, d.terms, d.withZeros = n, a.Cols, float64(a.Rows*a.Cols*n)
	d.multiplyAdds = d.withZeros - float64(zeros*n)
}

// MatMul implements kernels.Ops, as do the methods below.
func (o *watchedOps) MatMul(dst, a, b kernels.Mat, add bool) {
	o.run(fmt.Sprintf("MatMul %d x %d", a.Cols, b.Cols), func() { o.Ops.MatMul(dst, a, b, add) },
		func(d *demand) { d.product(a, b.Cols) }, dst, a, b)
}

func (o *watchedOps) MatMulTransA(dst, a, b kernels.Mat, add bool) {
	o.run(fmt.Sprintf("MatMulTransA %d x %d", a.Cols, b.Cols), func() { o.Ops.MatMulTransA(dst, a, b, add) },
		func(d *demand) {
			d.product(a, b.Cols)
			d.columns, d.terms, d.transposed = max(a.Cols, b.Cols), 0, true // the result may be computed transposed
		}, dst, a, b)
}

func (o *watchedOps) MatMulTransB(dst, a, b kernels.Mat, add bool) {
	o.run(fmt.Sprintf("MatMulTransB %d x %d", a.Cols, b.Rows), func() { o.Ops.MatMulTransB(dst, a, b, add) },
		func(d *demand) { d.product(a, b.Rows) }, dst, a, b)
}

func (o *watchedOps) MatMulBiasReLUDropout(dst, a, b, bias kernels.Mat, relu bool, drop *kernels.Dropout) {
	o.run(fmt.Sprintf("MatMul %d x %d", a.Cols, b.Cols), func() { o.Ops.MatMulBiasReLUDropout(dst, a, b, bias, relu, drop) },
		func(d *demand) { d.product(a, b.Cols) }, dst, a, b)
}

func (o *watchedOps) GradThrough(h, a, b, a2, b2 kernels.Mat, drop *kernels.Dropout) {
	o.run(fmt.Sprintf("GradThrough %d x %d", a.Cols+a2.Cols, b.Rows), func() { o.Ops.GradThrough(h, a, b, a2, b2, drop) },
		func(d *demand) {
			d.product(a, b.Rows)
			if !a2.IsNil() {
				second := &demand{}
				second.product(a2, b2.Rows)
				d.add(second)
			}
		}, h, a, b, a2, b2)
}

func (o *watchedOps) SparseMatMul(dst kernels.Mat, xs kernels.Sparse, w kernels.Mat, drop *kernels.Dropout) {
	o.sparse(fmt.Sprintf("SparseMatMul x %d", w.Cols), func() { o.Ops.SparseMatMul(dst, xs, w, drop) }, xs.Offsets, xs.Vals, drop, dst, w)
}

func (o *watchedOps) SparseMatMulTransA(dst kernels.Mat, xt *kernels.Transposed, g kernels.Mat, drop *kernels.Dropout) {
	o.sparse(fmt.Sprintf("SparseMatMulTransA x %d", g.Cols), func() { o.Ops.SparseMatMulTransA(dst, xt, g, drop) },
		xt.Offsets, xt.Vals, drop, dst, g)
}

// sparse runs a product with the rows of sparse features that begin at offsets, each of which has a value and the
// number of its column. Dropout leaves the expected number of them.
func (o *watchedOps) sparse(kernel string, call func(), offsets kernels.Vector[int64], values kernels.Vector[float32],
	drop *kernels.Dropout, operands ...kernels.Mat) {
	o.run(kernel, call, func(d *demand) {
		at := offsets.Host()
		first, n := at[0], int(at[len(at)-1]-at[0])
		if n > 0 {
			o.worker.operand(d, unsafe.Pointer(&values.Host()[first]), 8*n)
		}
		d.multiplyAdds = float64(n * operands[0].Cols)
		if drop != nil {
			d.multiplyAdds *= 1 - float64(drop.P)
		}
	}, operands...)
}

// pass runs a kernel with one pass over its operands.
func (o *watchedOps) pass(kernel string, call func(), exponentials int, operands ...kernels.Mat) {
	o.run(fmt.Sprintf("%s x %d", kernel, operands[0].Cols), call, func(d *demand) { d.exponentials = float64(exponentials) }, operands...)
}

func (o *watchedOps) BiasReLUDropout(dst, z, bias kernels.Mat, relu bool, drop *kernels.Dropout) {
	o.pass("BiasReLUDropout", func() { o.Ops.BiasReLUDropout(dst, z, bias, relu, drop) }, 0, dst, z)
}

func (o *watchedOps) BiasReLUDropoutGrad(dst, bias, g, h kernels.Mat, relu bool, drop *kernels.Dropout) {
	operands := []kernels.Mat{dst, g}
	if relu || drop != nil {
		operands = append(operands, h)
	}
	o.pass("BiasReLUDropoutGrad", func() { o.Ops.BiasReLUDropoutGrad(dst, bias, g, h, relu, drop) }, 0, operands...)
}

func (o *watchedOps) BiasELUDropout(dst, z, bias kernels.Mat, drop *kernels.Dropout) {
	o.pass("BiasELUDropout", func() { o.Ops.BiasELUDropout(dst, z, bias, drop) }, z.Rows*z.Cols, dst, z)
}

func (o *watchedOps) BiasELUDropoutGrad(dst, bias, g, h kernels.Mat, drop *kernels.Dropout) {
	o.pass("BiasELUDropoutGrad", func() { o.Ops.BiasELUDropoutGrad(dst, bias, g, h, drop) }, 0, dst, g, h)
}

func (o *watchedOps) ColumnSums(dst, g kernels.Mat, add bool) {
	o.pass("ColumnSums", func() { o.Ops.ColumnSums(dst, g, add) }, 0, g)
}

func (o *watchedOps) Add(dst, x kernels.Mat) {
	o.pass("Add", func() { o.Ops.Add(dst, x) }, 0, dst, x)
}

func (o *watchedOps) RowDots(dst, x, y kernels.Mat) {
	o.pass("RowDots", func() { o.Ops.RowDots(dst, x, y) }, 0, x, y)
}

func (o *watchedOps) DropoutRows(dst, x kernels.Mat, drop *kernels.Dropout) {
	o.pass("DropoutRows", func() { o.Ops.DropoutRows(dst, x, drop) }, 0, dst, x)
}

func (o *watchedOps) SoftmaxCrossEntropy(grad, logits kernels.Mat, labels kernels.Vector[int32], split kernels.Vector[uint8], want uint8,
	scale float32) (loss float64, count int64) {
	rows := 0
	o.run(fmt.Sprintf("SoftmaxCrossEntropy x %d", logits.Cols), func() {
		loss, count = o.Ops.SoftmaxCrossEntropy(grad, logits, labels, split, want, scale)
	}, func(d *demand) {
		for r, s := range split.Host() {
			if s == want && labels.Host()[r] != graph.Unlabelled {
				rows++
			}
		}
		d.exponentials = float64(rows * logits.Cols)
	}, grad)
	return loss, count
}

// source is a matrix from which edges gather: bytes of rows that are stride bytes apart.
type source struct {
	kernels.Mat
	bytes int
}

// gather counts the edges of a gather and the rows that they read. The worker's lock must be held.
func (w *watchedWorker) gather(d *demand, e kernels.Edges, sources ...source) (edges float64) {
	begin, end, cols := e.Begin.Host(), e.End.Host(), e.Cols.Host()
	levels := make([][machine.Levels]float64, len(sources))
	read := func(c uint32) {
		edges++
		for k, s := range sources {
			at := uintptr(s.Address()) + uintptr(c-e.Base)*uintptr(s.Bytes()/max(s.Rows, 1))
			levels[k][rowLevel(w.own, w.all, w.sizes, at, s.bytes)] += float64(s.bytes)
		}
	}
	indices := 0
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
	for k, s := range sources {
		d.addRows(s.bytes, levels[k])
	}
	d.operands[machine.Levels-1] += float64(4*indices + 16*len(begin))
	return edges
}

func isSelected(m kernels.VertexMask, v uint32) bool { return m[v/32]>>(v%32)&1 != 0 }

func (o *watchedOps) SpMM(dst kernels.Mat, e kernels.Edges, x kernels.Mat, add bool) {
	if e.Coded != nil {
		o.Ops.SpMM(dst, e, x, add)
		return
	}
	o.run(fmt.Sprintf("SpMM x %d", x.Cols), func() { o.Ops.SpMM(dst, e, x, add) }, func(d *demand) {
		d.columns = x.Cols
		d.multiplyAdds = o.worker.gather(d, e, source{x, x.Bytes() / max(x.Rows, 1)}) * float64(x.Cols)
	}, dst)
}

func (o *watchedOps) AttentionGather(a kernels.Attention, dst, signed, stats kernels.Mat, e kernels.Edges, x kernels.Emitted, r kernels.Mat,
	merge bool) {
	o.attend("AttentionGather", a, 1+min(signed.Cols, 1), func() { o.Ops.AttentionGather(a, dst, signed, stats, e, x, r, merge) },
		e, x.X, x.Scores, a.Heads, dst, signed)
}

func (o *watchedOps) AttentionGradSrc(a kernels.Attention, dst kernels.Mat, e kernels.Edges, first, own int, x kernels.Mat,
	back kernels.Attended) {
	o.attend("AttentionGradSrc", a, 2, func() { o.Ops.AttentionGradSrc(a, dst, e, first, own, x, back) },
		e, back.Grad, back.Packed, 3*a.Heads, dst, x)
}

// attend runs a kernel that reads, along each edge, a row of values and one of scores, computes an exponential for
// each head and multiplies the values times times.
func (o *watchedOps) attend(kernel string, a kernels.Attention, times int, call func(), e kernels.Edges, values, scores kernels.Mat,
	numbers int, operands ...kernels.Mat) {
	o.run(fmt.Sprintf("%s %d x %d", kernel, a.Heads, a.Width), call, func(d *demand) {
		sources := []source{{values, 4 * a.Columns()}}
		if !scores.IsNil() {
			sources = append(sources, source{scores, 4 * numbers})
		}
		edges := o.worker.gather(d, e, sources...)
		d.multiplyAdds, d.exponentials = edges*float64(times*a.Columns()), edges*float64(a.Heads)
	}, operands...)
}
