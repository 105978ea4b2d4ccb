package kernels

import (
	"math"

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
// Variant: pull, row by row, in batches of edges: scores, then weights, then
// weighted sums. Nothing is kept of an edge: the way back computes scores and
// masks again. The forward pass takes out of the exponents the largest score so
// far and scales what it has when that grows ("online softmax"), so that a row
// may be gathered in parts. A row is never cut, not even that of a hub: it is
// one worker's. Exponentials are float32, 2e-7 of their size wrong in package
// avx.

// Attention is a layer's attention: Heads heads of Width columns, at least one
// of either. Slope is that of LeakyReLU below 0, in [0, 1]. Drop drops edges, each head's for itself, as
// a function of (Seed, Epoch, Layer, dataset ids of both ends, head); its IDs
// are those of local vertices, ghosts too. Layer is less than 65536.
type Attention struct {
	Heads, Width int
	Slope        float32
	Drop         *Dropout
}

// Columns is the width of an output row.
func (a Attention) Columns() int { return a.Heads * a.Width }

// Emitted is the width of the row that a vertex emits: z [Heads x Width], then
// l [Heads].
func (a Attention) Emitted() int { return a.Heads * (a.Width + 1) }

// AttentionRows are rows that vertices have emitted [n x Emitted()]. Scores are
// their l as PackScores lays them out, [n x Heads]; nil: each call does it by
// itself, which costs more than its edges where g is a few rows of many.
type AttentionRows struct{ X, Scores []float32 }

// AttentionGather starts or, with merge, continues the gather of rows: dst
// [g.Rows() x Columns()] and stats [g.Rows() x 2·Heads], which AttentionFinish
// makes into the output, from x [local ids from g.Base on x Emitted()] and r
// [g.Rows() x Heads]. g has no scales. dst must not overlap x.
func AttentionGather(t *Team, a Attention, dst, stats []float32, g Gather, x AttentionRows, r []float32, merge bool) {
	rows := g.Rows()
	checkMatrix(dst, rows, a.Columns(), shortDst)
	checkMatrix(stats, rows, 2*a.Heads, shortDst)
	checkMatrix(r, rows, a.Heads, shortVector)
	runAttention(t, attentionTask{
		Attention: a, Gather: g, way: attend, dst: dst, dstWidth: a.Columns(), stats: stats, merge: merge,
		far: x.X, packed: x.Scores, farWidth: a.Emitted(), near: r, first: int(g.First),
	})
}

// AttentionFinish divides dst [rows x Columns()] by the sums in stats [rows x
// 2·Heads] and sets lse [rows x Heads] to the logarithm of Σ_u e^s.
func AttentionFinish(t *Team, a Attention, dst, lse []float32, rows int, stats []float32) {
	checkMatrix(dst, rows, a.Columns(), shortDst)
	checkMatrix(lse, rows, a.Heads, shortDst)
	checkMatrix(stats, rows, 2*a.Heads, shortInput)
	do(t, &t.slots.attentionFinish, attentionFinishTask{a, dst, lse, stats, t.set}, rows, rowGrain(a.Columns()))
}

// AttentionGrad is what the way back knows of own vertices.
type AttentionGrad struct {
	R, LSE []float32 // [own x Heads]: of the forward pass
	Grad   []float32 // [own x Columns()]: the gradient of its output
	Dots   []float32 // [own x Heads]: RowDots of Grad and that output
	// Packed are R, LSE and Dots as PackGrad lays them out, [own x 3·Heads], for
	// AttentionGradSrc; nil: each call does it by itself.
	Packed []float32
}

// PackScores takes the l of emitted rows [count x Emitted()], which are those
// from first on of n, to their places in dst [n x Heads].
func PackScores(t *Team, a Attention, dst []float32, n, first int, rows []float32) {
	checkMatrix(dst, n, a.Heads, shortDst)
	for group := 0; group < a.Heads; group += avx.Heads {
		pack(t, attentionPackTask{
			dst: dst[n*group:], from: [farParts][]float32{rows}, width: a.Emitted(), first: a.Columns() + group,
			size: min(a.Heads-group, avx.Heads), parts: 1,
		}, first, len(rows)/a.Emitted())
	}
}

// PackGrad takes R, LSE and Dots of own vertices [count x Heads], which are
// those from first on of n, to their places in dst [n x 3·Heads].
func PackGrad(t *Team, a Attention, dst []float32, n, first int, r, lse, dots []float32) {
	checkMatrix(dst, n, farParts*a.Heads, shortDst)
	for group := 0; group < a.Heads; group += avx.Heads {
		pack(t, attentionPackTask{
			dst: dst[n*farParts*group:], from: [farParts][]float32{r, lse, dots}, width: a.Heads, first: group,
			size: min(a.Heads-group, avx.Heads), parts: farParts,
		}, first, len(r)/a.Heads)
	}
}

// AttentionGradDst sets dr [g.Rows() x Heads] to, or adds to it, the gradient
// of r along the edges of g, which with x are those of AttentionGather.
func AttentionGradDst(t *Team, a Attention, dr []float32, g Gather, x AttentionRows, back AttentionGrad, add bool) {
	back.check(a, g.Rows())
	checkMatrix(dr, g.Rows(), a.Heads, shortDst)
	runAttention(t, attentionTask{
		Attention: a, Gather: g, way: backToTargets, dst: dr, dstWidth: a.Heads, merge: add,
		far: x.X, packed: x.Scores, farWidth: a.Emitted(), near: back.R, first: int(g.First), AttentionGrad: back,
	})
}

// AttentionGradSrc sets dst [g.Rows() x Emitted()] to the gradient of emitted
// rows x of the same shape. g is edges by source: its rows are the local
// vertices from first on, its columns own vertices, own of them.
func AttentionGradSrc(t *Team, a Attention, dst []float32, g Gather, first, own int, x []float32, back AttentionGrad) {
	back.check(a, own)
	checkMatrix(dst, g.Rows(), a.Emitted(), shortDst)
	checkMatrix(x, g.Rows(), a.Emitted(), shortInput)
	runAttention(t, attentionTask{
		Attention: a, Gather: g, way: backToSources, dst: dst, dstWidth: a.Emitted(), first: first,
		far: back.Grad[:own*a.Columns()], packed: back.Packed, farWidth: a.Columns(), near: x, AttentionGrad: back,
	})
}

func (b *AttentionGrad) check(a Attention, own int) {
	checkMatrix(b.R, own, a.Heads, shortVector)
	checkMatrix(b.LSE, own, a.Heads, shortVector)
	checkMatrix(b.Dots, own, a.Heads, shortVector)
	checkMatrix(b.Grad, own, a.Columns(), shortInput)
}

// RowDots sets dst [rows x heads] to the products of the rows of x and y
// [rows x heads·width], each head for itself.
func RowDots(t *Team, dst []float32, rows, heads, width int, x, y []float32) {
	checkMatrix(dst, rows, heads, shortDst)
	checkMatrix(x, rows, heads*width, shortInput)
	checkMatrix(y, rows, heads*width, shortInput)
	do(t, &t.slots.rowDots, rowDotsTask{dst, x, y, heads, width, t.set}, rows, rowGrain(heads*width))
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
			k.lse[r*k.Heads+h] = float32(float64(top) + math.Log(float64(sum)))
		}
	}
}

// scale is x *= s.
func scale(set avx.Set, x []float32, s float32) {
	if set != avx.None {
		set.Scale(x, s)
		return
	}
	for j := range x {
		x[j] *= s
	}
}
