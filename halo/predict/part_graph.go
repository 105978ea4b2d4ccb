package predict

import (
	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// partGraph has the edges of a part with its one-hop ghosts, whose rows follow the own rows. The
// sources of an own vertex are those of the edges into it. The sources of a ghost are the own
// vertices that gather from it: a part knows no other edges of a ghost.
type partGraph struct {
	own, rows int
	into, out kernels.Edges // of own vertices: by target, and by source
	ghosts    kernels.Edges // of ghosts, by target and by source
	inverse   []float32     // 1 / number of a row's sources [rows]; 0 without sources
	attention attention
}

// newPartGraph returns the edges of a shard, whose arrays it shares.
func newPartGraph(s *shard.Shard, attends bool, a *mapped.Arena) *partGraph {
	own := s.NumOwn()
	g := &partGraph{own: own, rows: own + s.NumGhosts()}
	t := s.Transpose(a, s.GhostEdges())
	g.inverse = mapped.Make[float32](a, g.rows)
	into := kernels.Gather{Begin: s.In.Offsets[:own], End: s.In.Offsets[1:], Cols: s.In.Cols}
	ghosts := kernels.Gather{Begin: t.Ghost.Offsets[:g.rows-own], End: t.Ghost.Offsets[1:], Cols: t.Ghost.Cols, First: uint32(own)}
	out := into
	if s.Directed {
		out.Cols, out.Begin = mapped.Make[uint32](a, len(s.In.Cols)), mapped.Make[int64](a, own+1)
		out.Begin, out.End = out.Begin[:own], out.Begin[1:]
	}
	g.into, g.out, g.ghosts = into.Edges(), out.Edges(), ghosts.Edges()
	if attends {
		g.attention = newAttention(g.rows, a)
	}
	a.Fill(func() {
		if s.Directed {
			mergeSources(out, s, t)
		}
		for v := range g.rows {
			if n := len(g.sources(v)); n > 0 {
				g.inverse[v] = 1 / float32(n)
			}
		}
	})
	return g
}

// mergeSources sets the edges by own source: to own vertices, then to ghosts.
func mergeSources(out kernels.Gather, s *shard.Shard, t *shard.Transposed) {
	n := 0
	for u := range out.Begin {
		n += copy(out.Cols[n:], t.OwnCols[t.OwnBegin[u]:t.OwnEnd[u]])
		n += copy(out.Cols[n:], s.In.Cols[s.InOwnEnd[u]:s.In.Offsets[u+1]])
		out.End[u] = int64(n)
	}
}

// sources returns the sources of row v.
func (g *partGraph) sources(v int) []uint32 {
	e := &g.into
	if v >= g.own {
		e, v = &g.ghosts, v-g.own
	}
	return e.Cols.Host()[e.Begin.Host()[v]:e.End.Host()[v]]
}

// mean sets dst [rows x cols] to the means of the sources' rows of x, of the same shape, from row
// first on: 0 or own.
func (g *partGraph) mean(t *kernels.Team, dst, x kernels.Mat, first int) {
	if first == 0 {
		into := g.into
		into.RowScale = kernels.HostVector(g.inverse[:g.own])
		t.SpMM(dst.Part(0, g.own), into, x, false)
	}
	ghosts := g.ghosts
	ghosts.RowScale = kernels.HostVector(g.inverse[g.own:])
	t.SpMM(dst.Part(g.own, g.rows), ghosts, x, false)
}

// meanGrad sets dx to the gradient of x from that of mean.
func (g *partGraph) meanGrad(t *kernels.Team, dx, dmean kernels.Mat) {
	out, ghosts := g.out, g.ghosts
	out.ColScale, ghosts.ColScale = kernels.HostVector(g.inverse), kernels.HostVector(g.inverse)
	t.SpMM(dx.Part(0, g.own), out, dmean, false)
	t.SpMM(dx.Part(g.own, g.rows), ghosts, dmean, false)
}

// attention replaces the mean over sources by attention (GAT, Veličković et al., ICLR'18) with one
// head and without another product: the weight of source u for v is the softmax of
// LeakyReLU(a·U[u] + b·U[v]).
type attention struct {
	kernels.Attention
	emitted, grad  []float32 // rows and their scores, and the gradients [rows x columns+1]
	near, stats    []float32 // b·U[v], and sums of softmax [rows], [rows x 2]
	dots, gradNear []float32 // [rows]
}

func newAttention(rows int, a *mapped.Arena) attention {
	floats := func(n int) []float32 { return mapped.Make[float32](a, n) }
	return attention{
		Attention: kernels.Attention{Heads: 1, Width: columns, Slope: 0.2},
		emitted:   floats(rows * (columns + 1)), grad: floats(rows * (columns + 1)),
		near: floats(rows), stats: floats(2 * rows), dots: floats(rows), gradNear: floats(rows),
	}
}

// emit sets emitted and near from x [rows x columns] and the weights a and b.
func (g *partGraph) emit(x kernels.Mat, w matrices) {
	at, a, b := &g.attention, w.source.Host(), w.target.Host()
	for v := range g.rows {
		row, out := x.Host()[v*columns:(v+1)*columns], at.emitted[v*(columns+1):(v+1)*(columns+1)]
		copy(out, row)
		out[columns], at.near[v] = dot(row, a), dot(row, b)
	}
}

func dot(x, y []float32) (sum float32) {
	for j, v := range x {
		sum += v * y[j]
	}
	return sum
}

// attend is mean with attention. It sets lse [rows], which attendGrad needs.
func (g *partGraph) attend(t *kernels.Team, dst, x kernels.Mat, lse []float32, w matrices, first int) {
	at := &g.attention
	g.emit(x, w)
	stats, near := kernels.HostMat(g.rows, 2, at.stats), kernels.HostMat(g.rows, 1, at.near)
	all := kernels.Emitted{X: kernels.HostMat(g.rows, columns+1, at.emitted)}
	if first == 0 {
		t.AttentionGather(at.Attention, dst.Part(0, g.own), kernels.Mat{}, stats.Part(0, g.own), g.into, all, near.Part(0, g.own), false)
	}
	t.AttentionGather(at.Attention, dst.Part(g.own, g.rows), kernels.Mat{}, stats.Part(g.own, g.rows), g.ghosts, all, near.Part(g.own, g.rows), false)
	t.AttentionFinish(at.Attention, dst.Part(first, g.rows), kernels.Mat{}, kernels.HostMat(g.rows, 1, lse).Part(first, g.rows), stats.Part(first, g.rows))
}

// attendGrad sets dx to the gradient of x, and adds those of the weights to grad, from dm, that of
// m, the result of attend.
func (g *partGraph) attendGrad(t *kernels.Team, dx, dm, x, m kernels.Mat, lse []float32, w, grad matrices) {
	at, one := &g.attention, func(x []float32) kernels.Mat { return kernels.HostMat(g.rows, 1, x) }
	g.emit(x, w)
	t.RowDots(one(at.dots), dm, m)
	back := kernels.Attended{R: one(at.near), LSE: one(lse), Grad: dm, Dots: one(at.dots)}
	emitted, demitted := kernels.HostMat(g.rows, columns+1, at.emitted), kernels.HostMat(g.rows, columns+1, at.grad)
	part := func(lo, hi int, targets, sources kernels.Edges) {
		own := kernels.Attended{R: back.R.Part(lo, hi), LSE: back.LSE.Part(lo, hi), Grad: dm.Part(lo, hi), Dots: back.Dots.Part(lo, hi)}
		t.AttentionGradDst(at.Attention, one(at.gradNear).Part(lo, hi), kernels.Mat{}, targets, kernels.Emitted{X: emitted}, own, false)
		t.AttentionGradSrc(at.Attention, demitted.Part(lo, hi), sources, lo, g.rows, emitted.Part(lo, hi), back)
	}
	part(0, g.own, g.into, g.out)
	part(g.own, g.rows, g.ghosts, g.ghosts)
	a, b, da, db := w.source.Host(), w.target.Host(), grad.source.Host(), grad.target.Host()
	for v := range g.rows {
		row, out, far := x.Host()[v*columns:(v+1)*columns], dx.Host()[v*columns:(v+1)*columns], at.grad[v*(columns+1):(v+1)*(columns+1)]
		score, near := far[columns], at.gradNear[v]
		for j := range out {
			out[j] = far[j] + score*a[j] + near*b[j]
			da[j] += score * row[j]
			db[j] += near * row[j]
		}
	}
}
