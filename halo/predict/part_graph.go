package predict

import (
	"math"

	"siafu/graph/shard"
	"siafu/internal/elementary"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// partGraph has the edges of a part with its one-hop ghosts, whose rows follow the own rows. The
// sources of an own vertex are those of the edges into it. The sources of a ghost are the own
// vertices that gather from it: a part knows no other edges of a ghost.
type partGraph struct {
	own, rows int
	into      kernels.Edges // of own vertices, by target
	ghosts    kernels.Edges // of ghosts, by target
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
	g.into, g.ghosts = into.Edges(), ghosts.Edges()
	if attends {
		g.newAttention(a)
	}
	a.Fill(func() {
		for v := range g.rows {
			if n := len(g.sources(v)); n > 0 {
				g.inverse[v] = 1 / float32(n)
			}
		}
	})
	return g
}

// sources returns the sources of row v.
func (g *partGraph) sources(v int) []uint32 {
	e := &g.into
	if v >= g.own {
		e, v = &g.ghosts, v-g.own
	}
	return e.Cols.Host()[e.Begin.Host()[v]:e.End.Host()[v]]
}

// mean sets dst [rows x cols] to the means of the sources' rows of x, of the same shape.
func (g *partGraph) mean(t *kernels.Team, dst, x kernels.Mat) {
	into, ghosts := g.into, g.ghosts
	into.RowScale, ghosts.RowScale = kernels.HostVector(g.inverse[:g.own]), kernels.HostVector(g.inverse[g.own:])
	t.SpMM(dst.Part(0, g.own), into, x, false)
	t.SpMM(dst.Part(g.own, g.rows), ghosts, x, false)
}

// attention replaces the mean over sources by attention (GAT, Veličković et al., ICLR'18) with one
// head and without another product: the weight of source u for v is the softmax of
// LeakyReLU(a·U[u] + b·U[v]).
type attention struct {
	kernels.Attention
	emitted          []float32 // rows and their scores [rows x columns+1]
	near, stats, lse []float32 // b·U[v], sums of softmax, and their logarithms [rows], [rows x 2], [rows]
	emit             func(lo, hi int)
	x                kernels.Mat // of emit
	w                matrices
}

// slope is that of LeakyReLU for negative numbers.
const slope = 0.2

func (g *partGraph) newAttention(a *mapped.Arena) {
	floats := func(n int) []float32 { return mapped.Make[float32](a, n) }
	g.attention = attention{
		Attention: kernels.Attention{Heads: 1, Width: columns, Slope: slope}, emit: g.emitRows,
		emitted: floats(g.rows * (columns + 1)), near: floats(g.rows), stats: floats(2 * g.rows), lse: floats(g.rows),
	}
}

// emitRows sets emitted and near from x [rows x columns] and the weights a and b.
func (g *partGraph) emitRows(lo, hi int) {
	at := &g.attention
	a, b := at.w.source.Host(), at.w.target.Host()
	for v := lo; v < hi; v++ {
		row, out := at.x.Host()[v*columns:(v+1)*columns], at.emitted[v*(columns+1):(v+1)*(columns+1)]
		copy(out, row)
		out[columns], at.near[v] = dot(row, a), dot(row, b)
	}
}

func dot(x, y []float32) (sum float32) {
	for j, v := range x {
		sum += float32(v * y[j])
	}
	return sum
}

// attend is mean with attention.
func (g *partGraph) attend(t *kernels.Team, dst, x kernels.Mat, w matrices) {
	at := &g.attention
	at.x, at.w = x, w
	t.Run(g.rows, 64, at.emit)
	stats, near := kernels.HostMat(g.rows, 2, at.stats), kernels.HostMat(g.rows, 1, at.near)
	all := kernels.Emitted{X: kernels.HostMat(g.rows, columns+1, at.emitted)}
	t.AttentionGather(at.Attention, dst.Part(0, g.own), kernels.Mat{}, stats.Part(0, g.own), g.into, all, near.Part(0, g.own), false)
	t.AttentionGather(at.Attention, dst.Part(g.own, g.rows), kernels.Mat{}, stats.Part(g.own, g.rows), g.ghosts, all,
		near.Part(g.own, g.rows), false)
	t.AttentionFinish(at.Attention, dst, kernels.Mat{}, kernels.HostMat(g.rows, 1, at.lse), stats)
}

// attendRow sets dst [columns] to the result of attend for row v. It returns the logarithm of the sum of
// the softmax.
func (g *partGraph) attendRow(dst []float32, v int, x []float32, w matrices) (lse float64) {
	clear(dst)
	near, most, sum := dot(x[v*columns:(v+1)*columns], w.target.Host()), math.Inf(-1), 0.0
	for _, u := range g.sources(v) {
		row := x[int(u)*columns : (int(u)+1)*columns]
		score := leaky(dot(row, w.source.Host()) + near)
		if score > most { // sums are relative to the greatest score
			by := elementary.Exp(most - score)
			kernels.ScaleRow(dst, float32(by))
			most, sum = score, sum*by
		}
		weight := elementary.Exp(score - most)
		sum += weight
		for j, y := range row {
			dst[j] += float32(float32(weight) * y)
		}
	}
	if sum > 0 {
		kernels.ScaleRow(dst, float32(1/sum))
	}
	return most + elementary.Log(sum)
}

func leaky(x float32) float64 {
	if x < 0 {
		x *= slope
	}
	return float64(x)
}

// attendRowGrad adds the gradients of the weights a and b to grad from dm, that of m, the result of
// attendRow, which returned lse. The rows x are constants.
func (g *partGraph) attendRowGrad(grad matrices, v int, x, dm, m []float32, lse float64, w matrices) {
	near, all := dot(x[v*columns:(v+1)*columns], w.target.Host()), dot(dm, m)
	total, da := float32(0), grad.source.Host()
	for _, u := range g.sources(v) {
		row := x[int(u)*columns : (int(u)+1)*columns]
		linear := dot(row, w.source.Host()) + near
		by := float32(elementary.Exp(leaky(linear)-lse)) * (dot(dm, row) - all)
		if linear < 0 {
			by *= slope
		}
		total += by
		for j, y := range row {
			da[j] += float32(by * y)
		}
	}
	for j, y := range x[v*columns : (v+1)*columns] {
		grad.target.Host()[j] += float32(total * y)
	}
}
