package kernels

// The attention of a Team as an Ops.

func (x *Emitted) host() AttentionRows { return AttentionRows{x.X.Host(), x.Scores.Host()} }

func (b *Attended) host() AttentionGrad {
	return AttentionGrad{b.R.Host(), b.LSE.Host(), b.Grad.Host(), b.Dots.Host(), b.Packed.Host()}
}

// AttentionGather implements Ops.
func (t *Team) AttentionGather(a Attention, dst, stats Mat, e Edges, x Emitted, r Mat, merge bool) {
	AttentionGather(t, a, dst.Host(), stats.Host(), e.gather(), x.host(), r.Host(), merge)
}

// AttentionFinish implements Ops.
func (t *Team) AttentionFinish(a Attention, dst, lse, stats Mat) {
	AttentionFinish(t, a, dst.Host(), lse.Host(), dst.Rows, stats.Host())
}

// AttentionGradDst implements Ops.
func (t *Team) AttentionGradDst(a Attention, dr Mat, e Edges, x Emitted, back Attended, add bool) {
	AttentionGradDst(t, a, dr.Host(), e.gather(), x.host(), back.host(), add)
}

// AttentionGradSrc implements Ops.
func (t *Team) AttentionGradSrc(a Attention, dst Mat, e Edges, first, own int, x Mat, back Attended) {
	AttentionGradSrc(t, a, dst.Host(), e.gather(), first, own, x.Host(), back.host())
}

// PackScores implements Ops.
func (t *Team) PackScores(a Attention, dst Mat, first int, rows Mat) {
	PackScores(t, a, dst.Host(), dst.Rows, first, rows.Host())
}

// PackGrad implements Ops.
func (t *Team) PackGrad(a Attention, dst Mat, first int, r, lse, dots Mat) {
	PackGrad(t, a, dst.Host(), dst.Rows, first, r.Host(), lse.Host(), dots.Host())
}

// RowDots implements Ops.
func (t *Team) RowDots(dst, x, y Mat) {
	fit(alike(x, y) && dst.Rows == x.Rows)
	if dst.Cols > 0 {
		RowDots(t, dst.Host(), dst.Rows, dst.Cols, x.Cols/dst.Cols, x.Host(), y.Host())
	}
}

// FoldScores implements Ops.
func (t *Team) FoldScores(wide, narrow, w, source, target Mat) {
	fit(wide.Rows == w.Rows && narrow.Rows == w.Rows && narrow.Cols == source.Rows && wide.Cols == w.Cols+narrow.Cols)
	fit(alike(source, target) && source.Rows*source.Cols == w.Cols)
	FoldScores(wide.Host(), narrow.Host(), w.Rows, source.Rows, source.Cols, w.Host(), source.Host(), target.Host())
}

// FoldScoresGrad implements Ops.
func (t *Team) FoldScoresGrad(gw, gsource, gtarget, gwide, gnarrow, w, source, target Mat) {
	fit(alike(gw, w) && alike(gsource, source) && alike(gtarget, target) && alike(source, target))
	fit(gwide.Rows == w.Rows && gnarrow.Rows == w.Rows && gnarrow.Cols == source.Rows && gwide.Cols == w.Cols+gnarrow.Cols)
	FoldScoresGrad(gw.Host(), gsource.Host(), gtarget.Host(), w.Rows, source.Rows, source.Cols,
		gwide.Host(), gnarrow.Host(), w.Host(), source.Host(), target.Host())
}
