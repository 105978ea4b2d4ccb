package cuda

import (
	"siafu/cuda/device"
	"siafu/kernels"
)

// AttentionGather implements kernels.Ops.
func (o *Ops) AttentionGather(a kernels.Attention, dst, signed, stats kernels.Mat, e kernels.Edges,
	x kernels.Emitted, r kernels.Mat, merge bool) {
	if !signed.IsNil() {
		o.Generic.AttentionGather(a, dst, signed, stats, e, x, r, merge)
		return
	}
	rows := e.Rows()
	checkAttention(a, e)
	mustFit(hasElements(dst, rows, a.Columns()) && hasElements(stats, rows, 2*a.Heads) && hasElements(r, rows, a.Heads))
	w := edgeArgs{"attentionGather", a, e, e.First, a.Mask(localCount(e, x.X.Rows*x.X.Cols/a.Emitted(), e.First))}
	gather := func(dst, stats device.Ptr, b rowRange, rowOfPiece device.Ptr, merge bool) {
		args := scores(w.bounds(o.newArgs().Ptr(dst).Ptr(stats), b, rowOfPiece), a, x).Ptr(matPtr(r))
		o.launchAttention(w, b.count, args, flag(merge))
	}
	p := o.eachRow(e, func(b rowRange) { gather(matPtr(dst), matPtr(stats), b, 0, merge) })
	if p == nil || p.cut == 0 {
		return
	}
	parts := o.scratchFloats(p.pieces * (a.Columns() + 2*a.Heads))
	defer o.releaseScratch()
	partStats := parts + device.Ptr(4*p.pieces*a.Columns())
	gather(parts, partStats, rowRange{0, p.begin, p.end, p.pieces}, p.line, false)
	size := groupSize(a.Width)
	o.launch("attentionHubs", launchGroups(p.cut*a.Heads, size), o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(stats)).Ptr(parts).Ptr(partStats).
		Ptr(p.hubs).Ptr(p.firsts).Int64(int64(p.cut)).Int32(int32(a.Heads)).Int32(int32(a.Width)).Int32(flag(merge)).Int32(int32(size)))
}

// eachRow runs a kernel for all rows of e except hubs. It returns the plan of e, or nil if e has
// no rows.
func (o *Ops) eachRow(e kernels.Edges, run func(b rowRange)) *plan {
	if e.Rows() == 0 {
		return nil
	}
	p := o.planOf(matrix{vectorPtr(e.Begin), vectorPtr(e.End), e.Rows()}, e.Cols)
	run(rowRange{p.order, vectorPtr(e.Begin), vectorPtr(e.End), p.rows})
	return p
}

// hubSums runs a kernel for the pieces of hubs. The kernel writes one row of cols columns per
// piece, and hubSums adds these rows to dst.
func (o *Ops) hubSums(p *plan, dst device.Ptr, cols int, add bool, run func(parts device.Ptr, b rowRange, rowOfPiece device.Ptr)) {
	if p == nil || p.cut == 0 {
		return
	}
	parts := o.scratchFloats(p.pieces * cols)
	defer o.releaseScratch()
	run(parts, rowRange{0, p.begin, p.end, p.pieces}, p.line)
	count := p.cut * cols
	o.launch("hubSums", launch1D(count),
		o.newArgs().Ptr(dst).Ptr(parts).Ptr(p.hubs).Ptr(p.firsts).Int64(int64(count)).Int32(int32(cols)).Int32(flag(add)))
}

// edgeArgs contains the common arguments of kernels along edges. Row 0 of e is local vertex
// first.
type edgeArgs struct {
	name string
	kernels.Attention
	e     kernels.Edges
	first uint32
	drop  kernels.Mask
}

// bounds appends the edge ranges of rows. With rowOfPiece, the ranges are those of pieces of
// rows.
func (w *edgeArgs) bounds(args *device.Args, b rowRange, rowOfPiece device.Ptr) *device.Args {
	return args.Ptr(b.begin).Ptr(b.end).Ptr(vectorPtr(w.e.Cols)).Ptr(b.order).Ptr(rowOfPiece).Int64(int64(b.count)).
		Uint32(w.e.Base).Int32(flag(w.e.SelfLoops)).Uint32(w.first)
}

// launchAttention launches an attention kernel for rows x heads. It appends the shape of the
// heads, the flags, the group size and the mask to args.
func (o *Ops) launchAttention(w edgeArgs, rows int, args *device.Args, flags ...int32) {
	size := groupSize(w.Width)
	args.Int32(int32(w.Heads)).Int32(int32(w.Width)).Float32(w.Slope)
	for _, f := range flags {
		args.Int32(f)
	}
	o.launch(w.name, launchGroups(rows*w.Heads, size), mask(args.Int32(int32(size)), w.drop))
}

func checkAttention(a kernels.Attention, e kernels.Edges) {
	if !(a.Slope >= 0 && a.Slope <= 1) || a.Heads < 1 || a.Width < 1 || a.Dynamic {
		panic("cuda: attention needs 0 <= slope <= 1, at least one head and column, and static scores")
	}
	mustFit(e.End.Len() >= e.Rows())
}

// hasElements reports whether m has at least rows x cols elements.
func hasElements(m kernels.Mat, rows, cols int) bool { return m.Rows*m.Cols >= rows*cols }

// localCount returns the number of local vertices. It includes far rows and the rows of e, which
// start at local vertex first.
func localCount(e kernels.Edges, far int, first uint32) int {
	return max(int(e.Base)+far, int(first)+e.Rows())
}

// scores appends emitted rows, and the address and stride of their scores.
func scores(args *device.Args, a kernels.Attention, x kernels.Emitted) *device.Args {
	args.Ptr(matPtr(x.X))
	if x.Scores.IsNil() {
		return args.Ptr(matPtr(x.X) + device.Ptr(4*a.Columns())).Int64(int64(a.Emitted()))
	}
	return args.Ptr(matPtr(x.Scores)).Int64(int64(a.Heads))
}

// AttentionFinish implements kernels.Ops.
func (o *Ops) AttentionFinish(a kernels.Attention, dst, signed, lse, stats kernels.Mat) {
	if !signed.IsNil() {
		o.Generic.AttentionFinish(a, dst, signed, lse, stats)
		return
	}
	rows := dst.Rows
	mustFit(hasElements(dst, rows, a.Columns()) && hasElements(lse, rows, a.Heads) && hasElements(stats, rows, 2*a.Heads))
	count := rows * a.Columns()
	o.launch("attentionFinish", launch1D(count), o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(lse)).Ptr(matPtr(stats)).Int64(int64(count)).
		Int32(int32(a.Heads)).Int32(int32(a.Width)))
}

// AttentionGradDst implements kernels.Ops.
func (o *Ops) AttentionGradDst(a kernels.Attention, dr, _ kernels.Mat, e kernels.Edges, x kernels.Emitted,
	back kernels.Attended, add bool) {
	rows := e.Rows()
	checkAttention(a, e)
	checkAttended(a, back, rows)
	mustFit(hasElements(dr, rows, a.Heads))
	w := edgeArgs{"attentionGradDst", a, e, e.First, a.Mask(localCount(e, x.X.Rows*x.X.Cols/a.Emitted(), e.First))}
	run := func(to device.Ptr, b rowRange, rowOfPiece device.Ptr, add bool) {
		args := scores(w.bounds(o.newArgs().Ptr(to), b, rowOfPiece), a, x).Ptr(matPtr(back.R)).Ptr(matPtr(back.LSE)).
			Ptr(matPtr(back.Grad)).Ptr(matPtr(back.Dots))
		o.launchAttention(w, b.count, args, flag(add))
	}
	p := o.eachRow(e, func(b rowRange) { run(matPtr(dr), b, 0, add) })
	o.hubSums(p, matPtr(dr), a.Heads, add, func(parts device.Ptr, b rowRange, rowOfPiece device.Ptr) { run(parts, b, rowOfPiece, false) })
}

func checkAttended(a kernels.Attention, b kernels.Attended, own int) {
	mustFit(hasElements(b.R, own, a.Heads) && hasElements(b.LSE, own, a.Heads) && hasElements(b.Grad, own, a.Columns()) &&
		hasElements(b.Dots, own, a.Heads))
}

// AttentionGradSrc implements kernels.Ops.
func (o *Ops) AttentionGradSrc(a kernels.Attention, dst kernels.Mat, e kernels.Edges, first, own int,
	x kernels.Mat, back kernels.Attended) {
	rows := e.Rows()
	checkAttention(a, e)
	checkAttended(a, back, own)
	mustFit(hasElements(dst, rows, a.Emitted()) && hasElements(x, rows, a.Emitted()))
	w := edgeArgs{"attentionGradSrc", a, e, uint32(first), a.Mask(localCount(e, own, uint32(first)))}
	run := func(to device.Ptr, b rowRange, rowOfPiece device.Ptr) {
		args := w.bounds(o.newArgs().Ptr(to), b, rowOfPiece).Ptr(matPtr(x))
		if packed := matPtr(back.Packed); !back.Packed.IsNil() {
			step := device.Ptr(4 * a.Heads)
			args.Ptr(packed).Ptr(packed + step).Ptr(packed + 2*step).Int64(int64(3 * a.Heads))
		} else {
			args.Ptr(matPtr(back.R)).Ptr(matPtr(back.LSE)).Ptr(matPtr(back.Dots)).Int64(int64(a.Heads))
		}
		o.launchAttention(w, b.count, args.Ptr(matPtr(back.Grad)))
	}
	p := o.eachRow(e, func(b rowRange) { run(matPtr(dst), b, 0) })
	o.hubSums(p, matPtr(dst), a.Emitted(), false, run)
}

// PackScores implements kernels.Ops: scores are stored by vertex.
func (o *Ops) PackScores(a kernels.Attention, dst kernels.Mat, first int, rows kernels.Mat) {
	n := rows.Rows * rows.Cols / a.Emitted()
	mustFit(hasElements(dst, first+n, a.Heads))
	count := n * a.Heads
	o.launch("packScores", launch1D(count), o.newArgs().Ptr(matPtr(dst)+device.Ptr(4*first*a.Heads)).Ptr(matPtr(rows)).Int64(int64(count)).
		Int32(int32(a.Heads)).Int32(int32(a.Width)))
}

// PackGrad implements kernels.Ops: each vertex has r, lse and dots.
func (o *Ops) PackGrad(a kernels.Attention, dst kernels.Mat, first int, r, lse, dots kernels.Mat) {
	n := r.Rows * r.Cols / a.Heads
	mustFit(hasElements(dst, first+n, 3*a.Heads) && hasElements(lse, n, a.Heads) && hasElements(dots, n, a.Heads))
	count := n * a.Heads
	o.launch("packGrad", launch1D(count),
		o.newArgs().Ptr(matPtr(dst)+device.Ptr(12*first*a.Heads)).Ptr(matPtr(r)).Ptr(matPtr(lse)).Ptr(matPtr(dots)).
			Int64(int64(count)).Int32(int32(a.Heads)))
}

// RowDots implements kernels.Ops.
func (o *Ops) RowDots(dst, x, y kernels.Mat) {
	mustFit(isSameShape(x, y) && dst.Rows == x.Rows)
	if dst.Cols == 0 {
		return
	}
	count, width := dst.Rows*dst.Cols, x.Cols/dst.Cols
	size := groupSize(width)
	o.launch("rowDots", launchGroups(count, size),
		o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(x)).Ptr(matPtr(y)).Int64(int64(count)).Int32(int32(width)).Int32(int32(size)))
}

// FoldScores implements kernels.Ops.
func (o *Ops) FoldScores(wide, narrow, w, source, target kernels.Mat) {
	mustFit(wide.Rows == w.Rows && narrow.Rows == w.Rows && narrow.Cols == source.Rows && wide.Cols == w.Cols+narrow.Cols)
	mustFit(isSameShape(source, target) && source.Rows*source.Cols == w.Cols)
	o.launch("foldScores", launch1D(w.Rows*source.Rows),
		o.newArgs().Ptr(matPtr(wide)).Ptr(matPtr(narrow)).Ptr(matPtr(w)).Ptr(matPtr(source)).Ptr(matPtr(target)).
			Int32(int32(w.Rows)).Int32(int32(source.Rows)).Int32(int32(source.Cols)))
}

// FoldScoresGrad implements kernels.Ops.
func (o *Ops) FoldScoresGrad(gw, gsource, gtarget, gwide, gnarrow, w, source, target kernels.Mat) {
	mustFit(isSameShape(gw, w) && isSameShape(gsource, source) && isSameShape(gtarget, target) && isSameShape(source, target))
	mustFit(gwide.Rows == w.Rows && gnarrow.Rows == w.Rows && gnarrow.Cols == source.Rows && gwide.Cols == w.Cols+gnarrow.Cols)
	args := o.newArgs()
	for _, m := range []kernels.Mat{gw, gsource, gtarget, gwide, gnarrow, w, source, target} {
		args.Ptr(matPtr(m))
	}
	o.launch("foldScoresGrad", launch1D(w.Cols), args.Int32(int32(w.Rows)).Int32(int32(source.Rows)).Int32(int32(source.Cols)))
}
