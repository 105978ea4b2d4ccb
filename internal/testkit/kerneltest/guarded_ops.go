package kerneltest

import (
	"unsafe"

	"siafu/kernels"
)

// The methods of kernels.Ops. Each opens its operands for the duration of the team's method.

// during makes a call of the team, and then closes the operands.
func (d *Guarded) during(call func()) {
	defer d.shut()
	call()
}

func (d *Guarded) Fork() kernels.Ops {
	return newGuarded(d.team.Fork().(*kernels.Team), d.vault)
}

func (d *Guarded) Borrow(owner kernels.Ops) { d.team.Borrow(owner.(*Guarded).team) }

func (d *Guarded) Intervals(cached int) int { return d.team.Intervals(cached) }

func (d *Guarded) Kernel() string { return "guarded " + d.team.Kernel() }

func (d *Guarded) Has(f kernels.Feature) bool { return d.team.Has(f) }

func (d *Guarded) Close() { d.team.Close() }

func (d *Guarded) Upload(dst unsafe.Pointer, src []byte) {
	defer d.shut()
	d.open(true, dst, len(src))
	d.team.Upload(dst, src)
}

func (d *Guarded) Download(dst []byte, src unsafe.Pointer) {
	defer d.shut()
	d.open(true, src, len(dst))
	d.team.Download(dst, src)
}

func (d *Guarded) Copy(dst, src kernels.Mat) {
	d.during(func() { d.team.Copy(d.mat(dst), d.mat(src)) })
}

func (d *Guarded) Clear(dst kernels.Mat) { d.during(func() { d.team.Clear(d.mat(dst)) }) }

func (d *Guarded) MatMul(dst, a, b kernels.Mat, add bool) {
	d.during(func() { d.team.MatMul(d.mat(dst), d.mat(a), d.mat(b), add) })
}

func (d *Guarded) MatMulTransA(dst, a, b kernels.Mat, add bool) {
	d.during(func() { d.team.MatMulTransA(d.mat(dst), d.mat(a), d.mat(b), add) })
}

func (d *Guarded) MatMulTransB(dst, a, b kernels.Mat, add bool) {
	d.during(func() { d.team.MatMulTransB(d.mat(dst), d.mat(a), d.mat(b), add) })
}

func (d *Guarded) MatMulBiasReLUDropout(dst, a, b, bias kernels.Mat, relu bool, drop *kernels.Dropout) {
	d.during(func() {
		d.team.MatMulBiasReLUDropout(d.mat(dst), d.mat(a), d.mat(b), d.mat(bias), relu, d.dropout(drop))
	})
}

func (d *Guarded) BiasReLUDropout(dst, z, bias kernels.Mat, relu bool, drop *kernels.Dropout) {
	d.during(func() { d.team.BiasReLUDropout(d.mat(dst), d.mat(z), d.mat(bias), relu, d.dropout(drop)) })
}

func (d *Guarded) BiasReLUDropoutGrad(dst, bias, g, h kernels.Mat, relu bool, drop *kernels.Dropout) {
	d.during(func() { d.team.BiasReLUDropoutGrad(d.mat(dst), d.mat(bias), d.mat(g), d.mat(h), relu, d.dropout(drop)) })
}

func (d *Guarded) BiasELUDropout(dst, z, bias kernels.Mat, drop *kernels.Dropout) {
	d.during(func() { d.team.BiasELUDropout(d.mat(dst), d.mat(z), d.mat(bias), d.dropout(drop)) })
}

func (d *Guarded) BiasELUDropoutGrad(dst, bias, g, h kernels.Mat, drop *kernels.Dropout) {
	d.during(func() { d.team.BiasELUDropoutGrad(d.mat(dst), d.mat(bias), d.mat(g), d.mat(h), d.dropout(drop)) })
}

func (d *Guarded) ColumnSums(dst, g kernels.Mat, add bool) {
	d.during(func() { d.team.ColumnSums(d.mat(dst), d.mat(g), add) })
}

func (d *Guarded) Add(dst, x kernels.Mat) { d.during(func() { d.team.Add(d.mat(dst), d.mat(x)) }) }

func (d *Guarded) Blend(dst kernels.Mat, keep float32, x kernels.Mat, share float32) {
	d.during(func() { d.team.Blend(d.mat(dst), keep, d.mat(x), share) })
}

func (d *Guarded) Activate(dst, z kernels.Mat, f kernels.Activation) {
	d.during(func() { d.team.Activate(d.mat(dst), d.mat(z), f) })
}

func (d *Guarded) ActivateGrad(dst, g, z kernels.Mat, f kernels.Activation) {
	d.during(func() { d.team.ActivateGrad(d.mat(dst), d.mat(g), d.mat(z), f) })
}

func (d *Guarded) ColumnMoments(dst kernels.Vector[float64], x, y kernels.Mat) {
	d.during(func() { d.team.ColumnMoments(vector(d, dst), d.mat(x), d.mat(y)) })
}

func (d *Guarded) AffineColumns(dst, g, a, z, b, c kernels.Mat) {
	d.during(func() { d.team.AffineColumns(d.mat(dst), d.mat(g), d.mat(a), d.mat(z), d.mat(b), d.mat(c)) })
}

func (d *Guarded) LayerNorm(dst, z, gain, bias kernels.Mat, eps float32) {
	d.during(func() { d.team.LayerNorm(d.mat(dst), d.mat(z), d.mat(gain), d.mat(bias), eps) })
}

func (d *Guarded) LayerNormGrad(dst, gain, bias, g, z, w kernels.Mat, eps float32) {
	d.during(func() { d.team.LayerNormGrad(d.mat(dst), d.mat(gain), d.mat(bias), d.mat(g), d.mat(z), d.mat(w), eps) })
}

func (d *Guarded) UnitRows(dst, z kernels.Mat, ball bool) {
	d.during(func() { d.team.UnitRows(d.mat(dst), d.mat(z), ball) })
}

func (d *Guarded) UnitRowsGrad(dst, g, z kernels.Mat, ball bool) {
	d.during(func() { d.team.UnitRowsGrad(d.mat(dst), d.mat(g), d.mat(z), ball) })
}

func (d *Guarded) PReLU(dst, z, slope kernels.Mat) {
	d.during(func() { d.team.PReLU(d.mat(dst), d.mat(z), d.mat(slope)) })
}

func (d *Guarded) PReLUGrad(dst, slope, g, z, w kernels.Mat) {
	d.during(func() { d.team.PReLUGrad(d.mat(dst), d.mat(slope), d.mat(g), d.mat(z), d.mat(w)) })
}

func (d *Guarded) Larger(dst, x kernels.Mat) {
	d.during(func() { d.team.Larger(d.mat(dst), d.mat(x)) })
}

func (d *Guarded) LargerGrad(dst, g, x, m kernels.Mat, add bool) {
	d.during(func() { d.team.LargerGrad(d.mat(dst), d.mat(g), d.mat(x), d.mat(m), add) })
}

func (d *Guarded) MeanHeads(dst kernels.Mat, heads int, x, bias kernels.Mat) {
	d.during(func() { d.team.MeanHeads(d.mat(dst), heads, d.mat(x), d.mat(bias)) })
}

func (d *Guarded) MeanHeadsGrad(dst kernels.Mat, heads int, g kernels.Mat) {
	d.during(func() { d.team.MeanHeadsGrad(d.mat(dst), heads, d.mat(g)) })
}

func (d *Guarded) DropoutRows(dst, x kernels.Mat, drop *kernels.Dropout) {
	d.during(func() { d.team.DropoutRows(d.mat(dst), d.mat(x), d.dropout(drop)) })
}

func (d *Guarded) CopyColumns(dst, x kernels.Mat, from int) {
	d.during(func() { d.team.CopyColumns(d.mat(dst), d.mat(x), from) })
}

func (d *Guarded) PutColumns(dst kernels.Mat, from int, x kernels.Mat) {
	d.during(func() { d.team.PutColumns(d.mat(dst), from, d.mat(x)) })
}

func (d *Guarded) SpreadColumns(dst kernels.Mat, from int, xs kernels.Sparse) {
	d.during(func() { d.team.SpreadColumns(d.mat(dst), from, d.sparse(xs)) })
}

func (d *Guarded) SparseToDense(dst kernels.Mat, xs kernels.Sparse, drop *kernels.Dropout) {
	d.during(func() { d.team.SparseToDense(d.mat(dst), d.sparse(xs), d.dropout(drop)) })
}

func (d *Guarded) SparseMatMul(dst kernels.Mat, xs kernels.Sparse, w kernels.Mat, drop *kernels.Dropout) {
	d.during(func() { d.team.SparseMatMul(d.mat(dst), d.sparse(xs), d.mat(w), d.dropout(drop)) })
}

func (d *Guarded) SpMM(dst kernels.Mat, e kernels.Edges, x kernels.Mat, add bool) {
	d.during(func() { d.team.SpMM(d.mat(dst), d.edges(e), d.mat(x), add) })
}

func (d *Guarded) Narrow(dst, x kernels.Mat, scale kernels.Vector[float32]) {
	d.during(func() { d.team.Narrow(d.mat(dst), d.mat(x), vector(d, scale)) })
}

func (d *Guarded) AttentionGather(a kernels.Attention, dst, signed, stats kernels.Mat, e kernels.Edges,
	x kernels.Emitted, r kernels.Mat, merge bool) {
	d.during(func() {
		d.team.AttentionGather(d.attention(a), d.mat(dst), d.mat(signed), d.mat(stats), d.edges(e), d.emitted(x), d.mat(r), merge)
	})
}

func (d *Guarded) AttentionFinish(a kernels.Attention, dst, signed, lse, stats kernels.Mat) {
	d.during(func() { d.team.AttentionFinish(d.attention(a), d.mat(dst), d.mat(signed), d.mat(lse), d.mat(stats)) })
}

func (d *Guarded) AttentionGradDst(a kernels.Attention, dr, along kernels.Mat, e kernels.Edges, x kernels.Emitted,
	back kernels.Attended, add bool) {
	d.during(func() {
		d.team.AttentionGradDst(d.attention(a), d.mat(dr), d.mat(along), d.edges(e), d.emitted(x), d.attended(back), add)
	})
}

func (d *Guarded) AttentionGradSrc(a kernels.Attention, dst kernels.Mat, e kernels.Edges, first, own int,
	x kernels.Mat, back kernels.Attended) {
	d.during(func() {
		d.team.AttentionGradSrc(d.attention(a), d.mat(dst), d.edges(e), first, own, d.mat(x), d.attended(back))
	})
}

func (d *Guarded) PackScores(a kernels.Attention, dst kernels.Mat, first int, rows kernels.Mat) {
	d.during(func() { d.team.PackScores(d.attention(a), d.mat(dst), first, d.mat(rows)) })
}

func (d *Guarded) PackGrad(a kernels.Attention, dst kernels.Mat, first int, r, lse, dots kernels.Mat) {
	d.during(func() { d.team.PackGrad(d.attention(a), d.mat(dst), first, d.mat(r), d.mat(lse), d.mat(dots)) })
}

func (d *Guarded) RowDots(dst, x, y kernels.Mat) {
	d.during(func() { d.team.RowDots(d.mat(dst), d.mat(x), d.mat(y)) })
}

func (d *Guarded) FoldScores(wide, narrow, w, source, target kernels.Mat) {
	d.during(func() { d.team.FoldScores(d.mat(wide), d.mat(narrow), d.mat(w), d.mat(source), d.mat(target)) })
}

func (d *Guarded) FoldScoresGrad(gw, gsource, gtarget, gwide, gnarrow, w, source, target kernels.Mat) {
	d.during(func() {
		d.team.FoldScoresGrad(d.mat(gw), d.mat(gsource), d.mat(gtarget), d.mat(gwide), d.mat(gnarrow),
			d.mat(w), d.mat(source), d.mat(target))
	})
}

func (d *Guarded) PackRows(dst kernels.Mat, index kernels.Vector[uint32], x, more kernels.Mat) {
	d.during(func() { d.team.PackRows(d.mat(dst), vector(d, index), d.mat(x), d.mat(more)) })
}

func (d *Guarded) AddRows(dst, more kernels.Mat, index kernels.Vector[uint32], rows kernels.Mat) {
	d.during(func() { d.team.AddRows(d.mat(dst), d.mat(more), vector(d, index), d.mat(rows)) })
}

func (d *Guarded) SoftmaxCrossEntropy(grad, logits kernels.Mat, labels kernels.Vector[int32], split kernels.Vector[uint8], want uint8,
	scale float32) (loss float64, count int64) {
	defer d.shut()
	return d.team.SoftmaxCrossEntropy(d.mat(grad), d.mat(logits), vector(d, labels), vector(d, split), want, scale)
}

func (d *Guarded) Accuracy(logits kernels.Mat, labels kernels.Vector[int32], split kernels.Vector[uint8]) (correct, total [4]int64) {
	defer d.shut()
	return d.team.Accuracy(d.mat(logits), vector(d, labels), vector(d, split))
}

func (d *Guarded) Argmax(dst kernels.Vector[int32], x kernels.Mat) {
	d.during(func() { d.team.Argmax(vector(d, dst), d.mat(x)) })
}

func (d *Guarded) Softmax(dst, x kernels.Mat) {
	d.during(func() { d.team.Softmax(d.mat(dst), d.mat(x)) })
}

func (d *Guarded) Step(o kernels.Optimizer, step int, w, grad kernels.Mat, state []kernels.Mat, decay bool) {
	defer d.shut()
	var slots []kernels.Mat
	for _, s := range state {
		slots = append(slots, d.mat(s))
	}
	d.team.Step(o, step, d.mat(w), d.mat(grad), slots, decay)
}

func (d *Guarded) SparseMatMulTransA(dst kernels.Mat, xt *kernels.Transposed, x kernels.Mat, drop *kernels.Dropout) {
	defer d.shut()
	here := *xt
	here.Offsets, here.Rows, here.Vals = vector(d, xt.Offsets), vector(d, xt.Rows), vector(d, xt.Vals)
	d.team.SparseMatMulTransA(d.mat(dst), &here, d.mat(x), d.dropout(drop))
}
