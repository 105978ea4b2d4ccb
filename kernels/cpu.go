package kernels

import (
	"unsafe"

	"siafu/graph/mapped"
)

// A Team is an Ops: its methods are the kernels, on matrices of this process's
// memory.

var _ Ops = (*Team)(nil)

// fit panics unless shapes do.
func fit(ok bool) {
	if !ok {
		panic("kernels: matrices whose shapes do not fit")
	}
}

// alike tells whether matrices have the same shape.
func alike(a, b Mat) bool { return a.Rows == b.Rows && a.Cols == b.Cols }

// Fork implements Ops.
func (t *Team) Fork() Ops {
	f := NewTeam(1)
	if f.Use(t.kernel) != nil {
		panic("kernels: the kernels in use are missing")
	}
	return f
}

// Intervals implements Ops.
func (t *Team) Intervals(cached int) int { return cached }

// Remote implements Ops.
func (t *Team) Remote() bool { return false }

// Alloc implements Ops.
func (t *Team) Alloc(a *mapped.Arena, bytes int) unsafe.Pointer {
	b := mapped.Make[byte](a, bytes)
	return start(b, len(b))
}

// Upload implements Ops.
func (t *Team) Upload(dst unsafe.Pointer, src []byte) {
	copy(unsafe.Slice((*byte)(dst), len(src)), src)
}

// Download implements Ops.
func (t *Team) Download(dst []byte, src unsafe.Pointer) {
	copy(dst, unsafe.Slice((*byte)(src), len(dst)))
}

// Copy implements Ops.
func (t *Team) Copy(dst, src Mat) {
	fit(alike(dst, src))
	copy(dst.Host(), src.Host())
}

// Clear implements Ops.
func (t *Team) Clear(dst Mat) { clear(dst.Host()) }

// MatMul implements Ops.
func (t *Team) MatMul(dst, a, b Mat, add bool) {
	fit(dst.Rows == a.Rows && a.Cols == b.Rows && dst.Cols == b.Cols)
	if a.half {
		MatMulHalf(t, dst.Host(), dst.Rows, dst.Cols, a.Cols, a.HostHalf(0), b.Host(), add)
		return
	}
	MatMul(t, dst.Host(), dst.Rows, dst.Cols, a.Cols, a.Host(), b.Host(), add)
}

// MatMulTransA implements Ops.
func (t *Team) MatMulTransA(dst, a, b Mat, add bool) {
	fit(dst.Rows == a.Cols && a.Rows == b.Rows && dst.Cols == b.Cols)
	if a.half {
		MatMulTransAHalf(t, dst.Host(), dst.Rows, dst.Cols, a.Rows, a.HostHalf(0), b.Host(), add)
		return
	}
	MatMulTransA(t, dst.Host(), dst.Rows, dst.Cols, a.Rows, a.Host(), b.Host(), add)
}

// MatMulTransB implements Ops.
func (t *Team) MatMulTransB(dst, a, b Mat, add bool) {
	fit(dst.Rows == a.Rows && a.Cols == b.Cols && dst.Cols == b.Rows)
	MatMulTransB(t, dst.Host(), dst.Rows, dst.Cols, a.Cols, a.Host(), b.Host(), add)
}

// MatMulBiasReLUDropout implements Ops.
func (t *Team) MatMulBiasReLUDropout(dst, a, b, bias Mat, relu bool, drop *Dropout) {
	fit(dst.Rows == a.Rows && a.Cols == b.Rows && dst.Cols == b.Cols)
	if a.half {
		MatMulBiasReLUDropoutHalf(t, dst.Host(), dst.Rows, dst.Cols, a.Cols, a.HostHalf(0), b.Host(), bias.Host(), relu, drop)
		return
	}
	MatMulBiasReLUDropout(t, dst.Host(), dst.Rows, dst.Cols, a.Cols, a.Host(), b.Host(), bias.Host(), relu, drop)
}

// BiasReLUDropout implements Ops.
func (t *Team) BiasReLUDropout(dst, z, bias Mat, relu bool, drop *Dropout) {
	fit(alike(dst, z))
	BiasReLUDropout(t, dst.Host(), dst.Rows, dst.Cols, z.Host(), bias.Host(), relu, drop)
}

// BiasReLUDropoutGrad implements Ops.
func (t *Team) BiasReLUDropoutGrad(dst, bias, g, h Mat, relu bool, drop *Dropout) {
	fit(alike(dst, g) && alike(dst, h))
	BiasReLUDropoutGrad(t, dst.Host(), bias.Host(), dst.Rows, dst.Cols, g.Host(), h.Host(), relu, drop)
}

// BiasELUDropout implements Ops.
func (t *Team) BiasELUDropout(dst, z, bias Mat, drop *Dropout) {
	fit(alike(dst, z))
	BiasELUDropout(t, dst.Host(), dst.Rows, dst.Cols, z.Host(), bias.Host(), drop)
}

// BiasELUDropoutGrad implements Ops.
func (t *Team) BiasELUDropoutGrad(dst, bias, g, h Mat, drop *Dropout) {
	fit(alike(dst, g) && alike(dst, h))
	BiasELUDropoutGrad(t, dst.Host(), bias.Host(), dst.Rows, dst.Cols, g.Host(), h.Host(), drop)
}

// ColumnSums implements Ops.
func (t *Team) ColumnSums(dst, g Mat, add bool) {
	fit(dst.Rows == 1 && dst.Cols == g.Cols)
	ColumnSums(t, dst.Host(), g.Rows, g.Cols, g.Host(), add)
}

// Add implements Ops.
func (t *Team) Add(dst, x Mat) {
	fit(alike(dst, x))
	Add(t, dst.Host(), x.Host())
}

// MeanHeads implements Ops.
func (t *Team) MeanHeads(dst Mat, heads int, x, bias Mat) {
	fit(dst.Rows == x.Rows && x.Cols == heads*dst.Cols)
	MeanHeads(t, dst.Host(), dst.Rows, heads, dst.Cols, x.Host(), bias.Host())
}

// MeanHeadsGrad implements Ops.
func (t *Team) MeanHeadsGrad(dst Mat, heads int, g Mat) {
	fit(dst.Rows == g.Rows && dst.Cols == heads*g.Cols)
	MeanHeadsGrad(t, dst.Host(), dst.Rows, heads, g.Cols, g.Host())
}

// Step implements Ops.
func (t *Team) Step(o Optimizer, step int, w, grad Mat, state []Mat, decay bool) {
	fit(alike(w, grad))
	t.slots.state = t.slots.state[:0]
	for _, s := range state {
		t.slots.state = append(t.slots.state, s.Host())
	}
	o.Step(step, w.Host(), grad.Host(), t.slots.state, decay)
}

// DropoutRows implements Ops.
func (t *Team) DropoutRows(dst, x Mat, drop *Dropout) {
	fit(alike(dst, x))
	DropoutRows(t, dst.Host(), dst.Rows, dst.Cols, x.Host(), drop)
}

// CopyColumns implements Ops.
func (t *Team) CopyColumns(dst, x Mat, from int) {
	fit(dst.Rows == x.Rows && from >= 0 && from+dst.Cols <= x.Cols)
	CopyColumns(t, dst.Host(), dst.Rows, from, from+dst.Cols, x.Cols, x.Host())
}

// PutColumns implements Ops.
func (t *Team) PutColumns(dst Mat, from int, x Mat) {
	fit(dst.Rows == x.Rows && from >= 0 && from+x.Cols <= dst.Cols)
	if !dst.half {
		PutColumns(t, dst.Host(), dst.Rows, from, from+x.Cols, dst.Cols, x.Host())
	} else if half := dst.HostHalf(0); len(half) > 0 {
		NarrowRows(t, half[from:], dst.Cols, dst.Rows, x.Cols, x.Host(), nil)
	}
}

// SpreadColumns implements Ops.
func (t *Team) SpreadColumns(dst Mat, from int, xs Sparse) {
	fit(dst.Rows == xs.Rows())
	SpreadColumns(t, dst.Host(), from, from+dst.Cols, xs.rows())
}

// SparseToDense implements Ops.
func (t *Team) SparseToDense(dst Mat, xs Sparse, drop *Dropout) {
	fit(dst.Rows == xs.Rows())
	SparseToDense(t, dst.Host(), dst.Cols, xs.rows(), drop)
}

// SparseMatMul implements Ops.
func (t *Team) SparseMatMul(dst Mat, xs Sparse, w Mat, drop *Dropout) {
	fit(dst.Rows == xs.Rows() && dst.Cols == w.Cols)
	SparseMatMul(t, dst.Host(), dst.Cols, xs.rows(), w.Host(), drop)
}

// SparseMatMulTransA implements Ops.
func (t *Team) SparseMatMulTransA(dst Mat, xt *Transposed, g Mat, drop *Dropout) {
	fit(dst.Rows == xt.Offsets.Len()-1 && g.Rows == xt.Count && dst.Cols == g.Cols)
	t.slots.transposed = xt.host()
	SparseMatMulTransA(t, dst.Host(), dst.Cols, &t.slots.transposed, g.Host(), drop)
}

// SpMM implements Ops.
func (t *Team) SpMM(dst Mat, e Edges, x Mat, add bool) {
	fit(dst.Rows == e.Rows() && dst.Cols == x.Cols)
	if x.half {
		SpMMHalf(t, dst.Host(), dst.Cols, e.gather(), x.HostHalf(HalfSlack), add)
		return
	}
	SpMM(t, dst.Host(), dst.Cols, e.gather(), x.Host(), add)
}

// Narrow implements Ops.
func (t *Team) Narrow(dst, x Mat, scale Vector[float32]) {
	fit(alike(dst, x))
	NarrowRows(t, dst.HostHalf(0), dst.Cols, dst.Rows, dst.Cols, x.Host(), scale.Host())
}

// SoftmaxCrossEntropy implements Ops.
func (t *Team) SoftmaxCrossEntropy(grad, logits Mat, labels Vector[int32], split Vector[uint8], want uint8, scale float32) (float64, int64) {
	fit(grad.IsNil() || alike(grad, logits))
	return SoftmaxCrossEntropy(t, grad.Host(), logits.Rows, logits.Cols, logits.Host(), labels.Host(), split.Host(), want, scale)
}

// Accuracy implements Ops.
func (t *Team) Accuracy(logits Mat, labels Vector[int32], split Vector[uint8]) (correct, total [splits]int64) {
	return Accuracy(t, logits.Rows, logits.Cols, logits.Host(), labels.Host(), split.Host())
}

// Argmax implements Ops.
func (t *Team) Argmax(dst Vector[int32], x Mat) { Argmax(t, dst.Host(), x.Rows, x.Cols, x.Host()) }

// Softmax implements Ops.
func (t *Team) Softmax(dst, x Mat) {
	fit(alike(dst, x))
	Softmax(t, dst.Host(), dst.Rows, dst.Cols, x.Host())
}
