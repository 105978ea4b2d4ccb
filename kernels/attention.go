package kernels

import (
	"math"

	"siafu/internal/elementary"
	"siafu/kernels/internal/avx"
)

// Attention over the in-neighbours of a vertex (Veličković et al., "Graph
// Attention Networks", ICLR 2018, equations 1 to 6), forward and backward. For
// each head, v being an own vertex and u one of its in-neighbours,
//
//	s[v,u] = leaky(l[u] + r[v])        leaky(x) = x > 0 ? x : Slope·x
//	p[v,u] = softmax of s[v,u] over u
//	q[v,u] = p[v,u]·keep[v,u]          keep = 0 or 1/(1-P), dropout
//	out[v] = Σ_u q[v,u]·z[u]
//
// and with g[v] the gradient of out[v] and D[v] = g[v]·out[v] = Σ_u q·(g[v]·z[u])
//
//	ds[v,u] = p·((g[v]·z[u])·keep - D[v]) · (s > 0 ? 1 : Slope)
//	dr[v] = Σ_u ds    dl[u] = Σ_v ds    dz[u] = Σ_v q·g[v]
//
// Variant: pull, row by row, in batches of edges: scores, then weights, then weighted sums.
// Nothing is stored per edge: the backward pass recomputes scores and masks. The forward pass
// subtracts the largest score so far in the exponents, and rescales the partial result when
// the largest score grows ("online softmax"), so that a row may be gathered in parts. One worker computes a
// whole row, even of a hub. Exponentials are float32, with a relative error of 2e-7 in package
// avx.

// Attention is a layer's attention: Heads heads of Width columns, at least one of each. Slope
// is LeakyReLU's below 0, in [0, 1]. Drop drops edges independently per head, as a function of
// (Seed, Epoch, Layer, dataset ids of both ends, head). Drop.IDs has the ids of local vertices,
// including ghosts. Layer is less than 65536.
//
// Scores are those of GATv2 (dynamic.go) if Dynamic is set, with Vector [Heads x
// Width] and, where edges have features, Edge [their number x Columns()].
type Attention struct {
	Heads, Width int
	Slope        float32
	Drop         *Dropout
	Dynamic      bool
	Vector, Edge Mat
}

// Columns returns the width of an output row.
func (a *Attention) Columns() int { return a.Heads * a.Width }

// Emitted returns the width of the row that a vertex emits: z [Heads x Width], then l [Heads],
// absent if scores are dynamic.
func (a *Attention) Emitted() int {
	if a.Dynamic {
		return a.Columns()
	}
	return a.Heads * (a.Width + 1)
}

// ScoreWidth returns the width of r, the part of the scores that depends on the destination v.
func (a *Attention) ScoreWidth() int {
	if a.Dynamic {
		return a.Columns()
	}
	return a.Heads
}

// AlongWidth returns the width of the gradient along edges. A row has, for a destination, the sums
// over its edges of the gradients of Vector and Edge, the weights that apply to single edges. The
// width is 0 unless scores are dynamic.
func (a *Attention) AlongWidth() int {
	if !a.Dynamic {
		return 0
	}
	return (1 + a.Edge.Rows) * a.Columns()
}

// parts returns the number of values per head that PackGrad packs: r, lse and dots, or without
// r.
func (a *Attention) parts() int {
	if a.Dynamic {
		return farParts - 1
	}
	return farParts
}

// checkDrop panics if counters are not distinct for all layers and heads.
func (a *Attention) checkDrop() {
	if uint(a.Drop.Layer) >= 1<<16 || a.Heads > 1<<8*philoxWords {
		panic("kernels: more layers or heads than counters")
	}
}

// Mask returns the mask of edges between locals local vertices. The edge from u to v is kept
// for a head if word head mod 4 of
//
//	Philox({id of u, id of v, Epoch, Layer | head/4<<16}, Key)
//
// is at most Last.
func (a *Attention) Mask(locals int) Mask {
	if !a.Drop.active() {
		return Mask{}
	}
	a.checkDrop()
	m := a.Drop.Mask(locals)
	m.Layer |= streamAttention
	return m
}

// AttentionGather implements Ops. dst is [e.Rows() x Columns()] and stats [e.Rows()
// x 2·Heads], which AttentionFinish makes into the output; x is [local ids from
// e.Base on x Emitted()] and r [e.Rows() x Heads]. e has no scales. dst must not
// overlap x.
func (t *Team) AttentionGather(a Attention, dst, signed, stats Mat, e Edges, x Emitted, r Mat, merge bool) {
	rows := e.Rows()
	runAttention(t, attentionTask{
		Attention: a, Gather: e.gather(), op: attend, dst: floatsOf(dst, rows, a.Columns()), dstWidth: a.Columns(),
		stats: floatsOf(stats, rows, 2*a.Heads), signed: signedOf(a, signed, rows), merge: merge,
		far: x.X.Host(), packed: x.Scores.Host(), farWidth: a.Emitted(), near: floatsOf(r, rows, a.ScoreWidth()), first: int(e.First),
		rowMask: e.RowMask,
	})
}

// signedOf returns the signed sums of rows; nil if they are not requested.
func signedOf(a Attention, signed Mat, rows int) []float32 {
	if signed.IsNil() {
		return nil
	}
	return floatsOf(signed, rows, a.Emitted())
}

// floatsOf returns the elements of m, which must be rows x cols or more.
func floatsOf(m Mat, rows, cols int) []float32 {
	mustFit(m.Rows*m.Cols >= rows*cols)
	return m.Host()
}

// AttentionFinish implements Ops: it divides dst [rows x Columns()] by the sums in
// stats [rows x 2·Heads] and sets lse [rows x Heads] to the logarithm of Σ_u e^s.
func (t *Team) AttentionFinish(a Attention, dst, signed, lse, stats Mat) {
	rows := dst.Rows
	args := attentionFinishTask{a, floatsOf(dst, rows, a.Columns()), floatsOf(lse, rows, a.Heads), floatsOf(stats, rows, 2*a.Heads),
		signedOf(a, signed, rows), t.set}
	do(t, args, rows, rowGrain(a.Columns()))
}

// attended is an Attended in this process's memory.
type attended struct{ R, LSE, Grad, Dots, Packed []float32 }

// host returns b, of own vertices, in host memory.
func (b *Attended) host(a Attention, own int) attended {
	if !b.Packed.IsNil() && b.R.IsNil() {
		return attended{Grad: floatsOf(b.Grad, own, a.Columns()), Packed: floatsOf(b.Packed, own, farParts*a.Heads)}
	}
	return attended{
		R: floatsOf(b.R, own, a.ScoreWidth()), LSE: floatsOf(b.LSE, own, a.Heads), Grad: floatsOf(b.Grad, own, a.Columns()),
		Dots: floatsOf(b.Dots, own, a.Heads), Packed: b.Packed.Host(),
	}
}

// PackScores implements Ops.
func (t *Team) PackScores(a Attention, dst Mat, first int, rows Mat) {
	k := attentionPackTask{dst: floatsOf(dst, dst.Rows, a.Heads), from: [farParts][]float32{rows.Host()},
		width: a.Emitted(), first: a.Columns(), parts: 1}
	packGroups(t, a, k, dst.Rows, first)
}

// PackedScore returns the score of a row for a head, in scores that PackScores has packed.
func (a *Attention) PackedScore(packed Mat, row, head int) float32 {
	group := head / avx.Heads * avx.Heads
	return packed.Host()[packed.Rows*group+row*min(a.Heads-group, avx.Heads)+head-group]
}

// PackGrad implements Ops.
func (t *Team) PackGrad(a Attention, dst Mat, first int, r, lse, dots Mat) {
	k := attentionPackTask{dst: floatsOf(dst, dst.Rows, a.parts()*a.Heads), from: a.packs(r.Host(), lse.Host(), dots.Host()),
		width: a.Heads, parts: a.parts()}
	packGroups(t, a, k, dst.Rows, first)
}

// packGroups packs all heads of the vertices in k.from, group by group. In k.dst, which has the given
// number of vertices, they are the vertices from first on.
func packGroups(t *Team, a Attention, k attentionPackTask, rows, first int) {
	to, columns := k.dst, k.first
	for group := 0; group < a.Heads; group += avx.Heads {
		k.dst, k.first, k.size = to[rows*k.parts*group:], columns+group, min(a.Heads-group, avx.Heads)
		pack(t, k, first, len(k.from[0])/k.width)
	}
}

// packs returns the parts to pack.
func (a *Attention) packs(r, lse, dots []float32) [farParts][]float32 {
	if a.Dynamic {
		return [farParts][]float32{lse, dots}
	}
	return [farParts][]float32{r, lse, dots}
}

// AttentionGradDst implements Ops: dr is [e.Rows() x ScoreWidth()], along [e.Rows() x
// AlongWidth()], empty if that width is 0. x and e are AttentionGather's.
func (t *Team) AttentionGradDst(a Attention, dr, along Mat, e Edges, x Emitted, back Attended, add bool) {
	b := back.host(a, e.Rows())
	runAttention(t, attentionTask{
		Attention: a, Gather: e.gather(), op: backToTargets, dst: floatsOf(dr, e.Rows(), a.ScoreWidth()),
		dstWidth: a.ScoreWidth(), merge: add,
		along: floatsOf(along, e.Rows(), a.AlongWidth()),
		far:   x.X.Host(), packed: x.Scores.Host(), farWidth: a.Emitted(), near: b.R, first: int(e.First), attended: b,
	})
}

// AttentionGradSrc implements Ops: it sets dst [e.Rows() x Emitted()] to the
// gradient of emitted rows x of the same shape. e is edges by source: its rows are
// the local vertices from first on, its columns own vertices, own of them.
func (t *Team) AttentionGradSrc(a Attention, dst Mat, e Edges, first, own int, x Mat, back Attended) {
	b := back.host(a, own)
	columnMask := e.ColumnMask
	if a.Dynamic {
		columnMask = nil // leakyGradient sums by blocks of edges
	}
	runAttention(t, attentionTask{
		Attention: a, Gather: e.gather(), columnMask: columnMask, edgeMask: e.EdgeMask, op: backToSources,
		dst: floatsOf(dst, e.Rows(), a.Emitted()), dstWidth: a.Emitted(), first: first,
		far: b.Grad[:own*a.Columns()], packed: b.Packed, farWidth: a.Columns(), near: floatsOf(x, e.Rows(), a.Emitted()), attended: b,
	})
}

// RowDots implements Ops.
func (t *Team) RowDots(dst, x, y Mat) {
	mustFit(isSameShape(x, y) && dst.Rows == x.Rows)
	if dst.Cols > 0 {
		args := rowDotsTask{dst.Host(), x.Host(), y.Host(), dst.Cols, x.Cols / dst.Cols, t.set}
		do(t, args, dst.Rows, rowGrain(x.Cols))
	}
}

type rowDotsTask struct {
	dst, x, y    []float32
	heads, width int
	set          avx.Set
}

func (k *rowDotsTask) chunk(lo, hi int) {
	if k.heads == 0 {
		return
	}
	var ids [1]uint32
	for r := lo; r < hi; r++ {
		width := k.heads * k.width
		setDots(k.set, k.dst[r*k.heads:], k.heads, k.heads, rowOf(k.x, r, width), k.y[r*width:], width, ids[:], 1)
	}
}

type attentionFinishTask struct {
	Attention
	dst, lse, stats []float32
	signed          []float32 // nil: none
	set             avx.Set
}

func (k *attentionFinishTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		stats := rowOf(k.stats, r, 2*k.Heads)
		for h := range k.Heads {
			top, sum := stats[h], stats[k.Heads+h]
			if sum != 0 { // else there are no edges
				scale(k.set, rowOf(k.dst, r*k.Heads+h, k.Width), 1/sum)
			}
			if sum != 0 && k.signed != nil {
				row := rowOf(k.signed, r, k.Emitted())
				scale(k.set, row[h*k.Width:][:k.Width], 1/sum)
				row[k.Columns()+h] /= sum
			}
			if sum == 0 { // or they were masked, and have no weight in the backward pass
				k.lse[r*k.Heads+h] = float32(math.Inf(1))
				continue
			}
			k.lse[r*k.Heads+h] = float32(float64(top) + elementary.Log(float64(sum)))
		}
	}
}
