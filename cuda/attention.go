package cuda

import (
	"siafu/cuda/device"
	"siafu/kernels"
)

// AttentionGather implements kernels.Ops.
func (o *Ops) AttentionGather(a kernels.Attention, dst, stats kernels.Mat, e kernels.Edges, x kernels.Emitted, r kernels.Mat, merge bool) {
	rows := e.Rows()
	checkAttention(a, e)
	fit(holds(dst, rows, a.Columns()) && holds(stats, rows, 2*a.Heads) && holds(r, rows, a.Heads))
	w := way{"attentionGather", a, e, e.First, a.Mask(locals(e, x.X.Rows*x.X.Cols/a.Emitted(), e.First))}
	gather := func(dst, stats device.Ptr, b rowsOf, line device.Ptr, merge bool) {
		args := scores(w.bounds(o.with().Ptr(dst).Ptr(stats), b, line), a, x).Ptr(at(r))
		o.attend(w, b.count, args, flag(merge))
	}
	p := o.eachRow(e, func(b rowsOf) { gather(at(dst), at(stats), b, 0, merge) })
	if p == nil || p.cut == 0 {
		return
	}
	parts := o.floats(p.pieces * (a.Columns() + 2*a.Heads))
	defer o.leave()
	partStats := parts + device.Ptr(4*p.pieces*a.Columns())
	gather(parts, partStats, rowsOf{0, p.begin, p.end, p.pieces}, p.line, false)
	size := groupSize(a.Width)
	o.launch("attentionHubs", groups(p.cut*a.Heads, size), o.with().Ptr(at(dst)).Ptr(at(stats)).Ptr(parts).Ptr(partStats).
		Ptr(p.hubs).Ptr(p.firsts).Int64(int64(p.cut)).Int32(int32(a.Heads)).Int32(int32(a.Width)).Int32(flag(merge)).Int32(int32(size)))
}

// eachRow runs a kernel for the rows of e but for hubs, and returns their plan, nil
// where there are no rows.
func (o *Ops) eachRow(e kernels.Edges, run func(b rowsOf)) *plan {
	if e.Rows() == 0 {
		return nil
	}
	p := o.planOf(matrix{start(e.Begin), start(e.End), e.Rows()}, e.Cols)
	run(rowsOf{p.order, start(e.Begin), start(e.End), p.rows})
	return p
}

// hubSums runs a kernel for the pieces of hubs, which leave rows of N columns,
// and adds these to dst.
func (o *Ops) hubSums(p *plan, dst device.Ptr, cols int, add bool, run func(parts device.Ptr, b rowsOf, line device.Ptr)) {
	if p == nil || p.cut == 0 {
		return
	}
	parts := o.floats(p.pieces * cols)
	defer o.leave()
	run(parts, rowsOf{0, p.begin, p.end, p.pieces}, p.line)
	count := p.cut * cols
	o.launch("hubSums", each(count), o.with().Ptr(dst).Ptr(parts).Ptr(p.hubs).Ptr(p.firsts).Int64(int64(count)).Int32(int32(cols)).Int32(flag(add)))
}

// way is what the calls of a kernel along edges have in common. Row 0 of e is the
// local vertex first.
type way struct {
	name string
	kernels.Attention
	e     kernels.Edges
	first uint32
	drop  kernels.Mask
}

// bounds adds the edges of N rows, or, with line, of pieces of rows.
func (w *way) bounds(args *device.Args, b rowsOf, line device.Ptr) *device.Args {
	return args.Ptr(b.begin).Ptr(b.end).Ptr(start(w.e.Cols)).Ptr(b.order).Ptr(line).Int64(int64(b.count)).
		Uint32(w.e.Base).Int32(flag(w.e.SelfLoops)).Uint32(w.first)
}

// attend launches a kernel for the heads of rows: after its own arguments are the
// shape of heads, flags, the size of groups and the mask.
func (o *Ops) attend(w way, rows int, args *device.Args, flags ...int32) {
	size := groupSize(w.Width)
	args.Int32(int32(w.Heads)).Int32(int32(w.Width)).Float32(w.Slope)
	for _, f := range flags {
		args.Int32(f)
	}
	o.launch(w.name, groups(rows*w.Heads, size), mask(args.Int32(int32(size)), w.drop))
}

func checkAttention(a kernels.Attention, e kernels.Edges) {
	if !(a.Slope >= 0 && a.Slope <= 1) || a.Heads < 1 || a.Width < 1 || a.Dynamic {
		panic("cuda: attention outside its ranges")
	}
	fit(e.End.Len() >= e.Rows())
}

// holds reports whether m has the elements of rows x cols.
func holds(m kernels.Mat, rows, cols int) bool { return m.Rows*m.Cols >= rows*cols }

// locals is how many local vertices there are, N far rows among them and those
// of e, of which the first is local vertex first.
func locals(e kernels.Edges, far int, first uint32) int {
	return max(int(e.Base)+far, int(first)+e.Rows())
}

// scores adds emitted rows and where their scores lie, how many floats apart.
func scores(args *device.Args, a kernels.Attention, x kernels.Emitted) *device.Args {
	args.Ptr(at(x.X))
	if x.Scores.IsNil() {
		return args.Ptr(at(x.X) + device.Ptr(4*a.Columns())).Int64(int64(a.Emitted()))
	}
	return args.Ptr(at(x.Scores)).Int64(int64(a.Heads))
}

// AttentionFinish implements kernels.Ops.
func (o *Ops) AttentionFinish(a kernels.Attention, dst, lse, stats kernels.Mat) {
	rows := dst.Rows
	fit(holds(dst, rows, a.Columns()) && holds(lse, rows, a.Heads) && holds(stats, rows, 2*a.Heads))
	count := rows * a.Columns()
	o.launch("attentionFinish", each(count), o.with().Ptr(at(dst)).Ptr(at(lse)).Ptr(at(stats)).Int64(int64(count)).
		Int32(int32(a.Heads)).Int32(int32(a.Width)))
}

// AttentionGradDst implements kernels.Ops.
func (o *Ops) AttentionGradDst(a kernels.Attention, dr, _ kernels.Mat, e kernels.Edges, x kernels.Emitted, back kernels.Attended, add bool) {
	rows := e.Rows()
	checkAttention(a, e)
	checkAttended(a, back, rows)
	fit(holds(dr, rows, a.Heads))
	w := way{"attentionGradDst", a, e, e.First, a.Mask(locals(e, x.X.Rows*x.X.Cols/a.Emitted(), e.First))}
	run := func(to device.Ptr, b rowsOf, line device.Ptr, add bool) {
		args := scores(w.bounds(o.with().Ptr(to), b, line), a, x).Ptr(at(back.R)).Ptr(at(back.LSE)).Ptr(at(back.Grad)).Ptr(at(back.Dots))
		o.attend(w, b.count, args, flag(add))
	}
	p := o.eachRow(e, func(b rowsOf) { run(at(dr), b, 0, add) })
	o.hubSums(p, at(dr), a.Heads, add, func(parts device.Ptr, b rowsOf, line device.Ptr) { run(parts, b, line, false) })
}

func checkAttended(a kernels.Attention, b kernels.Attended, own int) {
	fit(holds(b.R, own, a.Heads) && holds(b.LSE, own, a.Heads) && holds(b.Grad, own, a.Columns()) && holds(b.Dots, own, a.Heads))
}

// AttentionGradSrc implements kernels.Ops.
func (o *Ops) AttentionGradSrc(a kernels.Attention, dst kernels.Mat, e kernels.Edges, first, own int, x kernels.Mat, back kernels.Attended) {
	rows := e.Rows()
	checkAttention(a, e)
	checkAttended(a, back, own)
	fit(holds(dst, rows, a.Emitted()) && holds(x, rows, a.Emitted()))
	w := way{"attentionGradSrc", a, e, uint32(first), a.Mask(locals(e, own, uint32(first)))}
	run := func(to device.Ptr, b rowsOf, line device.Ptr) {
		args := w.bounds(o.with().Ptr(to), b, line).Ptr(at(x))
		if packed := at(back.Packed); !back.Packed.IsNil() {
			step := device.Ptr(4 * a.Heads)
			args.Ptr(packed).Ptr(packed + step).Ptr(packed + 2*step).Int64(int64(3 * a.Heads))
		} else {
			args.Ptr(at(back.R)).Ptr(at(back.LSE)).Ptr(at(back.Dots)).Int64(int64(a.Heads))
		}
		o.attend(w, b.count, args.Ptr(at(back.Grad)))
	}
	p := o.eachRow(e, func(b rowsOf) { run(at(dst), b, 0) })
	o.hubSums(p, at(dst), a.Emitted(), false, run)
}

// PackScores implements kernels.Ops: they lie vertex after vertex.
func (o *Ops) PackScores(a kernels.Attention, dst kernels.Mat, first int, rows kernels.Mat) {
	n := rows.Rows * rows.Cols / a.Emitted()
	fit(holds(dst, first+n, a.Heads))
	count := n * a.Heads
	o.launch("packScores", each(count), o.with().Ptr(at(dst)+device.Ptr(4*first*a.Heads)).Ptr(at(rows)).Int64(int64(count)).
		Int32(int32(a.Heads)).Int32(int32(a.Width)))
}

// PackGrad implements kernels.Ops: of each vertex there are r, lse and dots.
func (o *Ops) PackGrad(a kernels.Attention, dst kernels.Mat, first int, r, lse, dots kernels.Mat) {
	n := r.Rows * r.Cols / a.Heads
	fit(holds(dst, first+n, 3*a.Heads) && holds(lse, n, a.Heads) && holds(dots, n, a.Heads))
	count := n * a.Heads
	o.launch("packGrad", each(count), o.with().Ptr(at(dst)+device.Ptr(12*first*a.Heads)).Ptr(at(r)).Ptr(at(lse)).Ptr(at(dots)).
		Int64(int64(count)).Int32(int32(a.Heads)))
}

// RowDots implements kernels.Ops.
func (o *Ops) RowDots(dst, x, y kernels.Mat) {
	fit(alike(x, y) && dst.Rows == x.Rows)
	if dst.Cols == 0 {
		return
	}
	count, width := dst.Rows*dst.Cols, x.Cols/dst.Cols
	size := groupSize(width)
	o.launch("rowDots", groups(count, size), o.with().Ptr(at(dst)).Ptr(at(x)).Ptr(at(y)).Int64(int64(count)).Int32(int32(width)).Int32(int32(size)))
}

// FoldScores implements kernels.Ops.
func (o *Ops) FoldScores(wide, narrow, w, source, target kernels.Mat) {
	fit(wide.Rows == w.Rows && narrow.Rows == w.Rows && narrow.Cols == source.Rows && wide.Cols == w.Cols+narrow.Cols)
	fit(alike(source, target) && source.Rows*source.Cols == w.Cols)
	o.launch("foldScores", each(w.Rows*source.Rows), o.with().Ptr(at(wide)).Ptr(at(narrow)).Ptr(at(w)).Ptr(at(source)).Ptr(at(target)).
		Int32(int32(w.Rows)).Int32(int32(source.Rows)).Int32(int32(source.Cols)))
}

// FoldScoresGrad implements kernels.Ops.
func (o *Ops) FoldScoresGrad(gw, gsource, gtarget, gwide, gnarrow, w, source, target kernels.Mat) {
	fit(alike(gw, w) && alike(gsource, source) && alike(gtarget, target) && alike(source, target))
	fit(gwide.Rows == w.Rows && gnarrow.Rows == w.Rows && gnarrow.Cols == source.Rows && gwide.Cols == w.Cols+gnarrow.Cols)
	args := o.with()
	for _, m := range []kernels.Mat{gw, gsource, gtarget, gwide, gnarrow, w, source, target} {
		args.Ptr(at(m))
	}
	o.launch("foldScoresGrad", each(w.Cols), args.Int32(int32(w.Rows)).Int32(int32(source.Rows)).Int32(int32(source.Cols)))
}
