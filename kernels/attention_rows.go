package kernels

import (
	"math"
	"math/bits"

	"siafu/internal/elementary"
	"siafu/kernels/internal/avx"
)

// edgeOp is an operation along edges.
type edgeOp int

const (
	attend edgeOp = iota
	backToTargets
	backToSources
)

// attentionTask computes one row after another, for a group of up to avx.Heads
// heads at a time. The vertex of the row is called near, and the vertices at the
// other ends of its edges are called far. In the forward pass and in backToTargets
// the near vertex is the destination of the edges; in backToSources it is the source.
type attentionTask struct {
	Attention
	Gather
	attended
	rowMask    VertexMask // near vertices whose edges count; nil: all
	columnMask VertexMask // far vertices whose edges count; nil: all
	edgeMask   EdgeMask   // bits of columnMask; nil: they are looked up
	op         edgeOp
	merge      bool
	first      int // local id of row 0
	dst        []float32
	dstWidth   int
	stats      []float32 // the largest score and the sum of each head
	signed     []float32 // B and Q (attention_signed.go); nil: not requested
	far        []float32 // rows of far vertices to weight or to multiply with
	farWidth   int
	near       []float32 // r, or emitted rows, of near vertices
	along      []float32 // by near vertex: gradients of the weights along edges, summed over the edges

	vector, edge []float32 // the weights along edges: Vector and Edge
	dim          int       // features of an edge
	packed       []float32 // the result of pack for all groups; nil: must be computed

	set         avx.Set
	group, size int       // the first head of the current group, and the number of heads in it
	step        int       // size, rounded up to a power of two
	values      []float32 // of far vertices: l, or r, lse and dots; size each
	stride      int       // distance of two vertices in values
	heads       [avx.Heads * attentionMixed]uint32
	most        int // maximum values of a batch
	drop        bool
	masks       [avx.Heads / philoxWords]mask // of four heads each
}

// Heads with fewer columns than attentionMixed are weighted together: a vector has several.
const attentionMixed = 32

// philoxWords is the number of heads that one draw serves.
const philoxWords = 4

// runAttention runs k for all heads, in groups.
func runAttention(t *Team, k attentionTask) {
	rows := k.Rows()
	if len(k.End) < rows {
		panic(shortVector)
	}
	if !(k.Slope >= 0 && k.Slope <= 1) || k.Heads < 1 || k.Width < 1 {
		panic("kernels: attention outside its ranges")
	}
	if rows == 0 {
		return
	}
	k.set, k.most = t.set, batchValues
	if k.Dynamic {
		k.prepareDynamic()
	}
	for ; k.group < k.Heads; k.group += k.size {
		k.size = min(k.Heads-k.group, avx.Heads)
		k.step = 1 << bits.Len(uint(k.size-1))
		if k.Dynamic {
			k.most = k.mostDynamic()
		}
		k.prepare()
		k.pack(t)
		doWeighted(t, k, k.Begin, k.End[rows-1])
	}
}

// prepare computes values that depend only on the group of heads.
func (k *attentionTask) prepare() {
	if k.mixesHeads() {
		for j := range k.size * k.Width {
			k.heads[j] = uint32(j / k.Width)
		}
	}
	if k.drop = k.Drop.active(); !k.drop {
		return
	}
	k.checkDrop()
	locals := max(int(k.Base)+len(k.far)/k.farWidth, k.first+k.Rows())
	for i := range k.masks {
		d := *k.Drop
		d.Layer |= streamAttention | (k.group/philoxWords+i)<<16
		k.masks[i] = d.prepare(locals)
	}
}

// mixesHeads reports whether a vector of columns may have several heads.
func (k *attentionTask) mixesHeads() bool { return k.size > 1 && k.Width < attentionMixed }

// pack copies the terms of scores, so that the values of a far vertex are in one cache line
// and many vertices stay in the caches. Reading them from the rows of far would save that
// line, but nothing prefetches it there.
func (k *attentionTask) pack(t *Team) {
	if k.Dynamic && k.op != backToSources {
		return
	}
	n := len(k.far) / k.farWidth
	args := attentionPackTask{width: k.farWidth, first: k.Columns() + k.group, size: k.size, parts: 1}
	args.from[0] = k.far
	if k.op == backToSources {
		args.from = k.packs(k.R, k.LSE, k.Dots)
		args.width, args.first, args.parts = k.Heads, k.group, k.Attention.parts()
	}
	k.stride = args.parts * k.size
	if k.packed != nil {
		k.values = k.packed[n*args.parts*k.group:][:n*k.stride]
		return
	}
	k.values = scratch(&t.floats, n*k.stride)
	args.dst = k.values
	pack(t, args, 0, n)
}

// pack packs count vertices, to dst from vertex first on.
func pack(t *Team, k attentionPackTask, first, count int) {
	stride := k.parts * k.size
	k.dst = k.dst[first*stride:]
	do(t, k, count, rowGrain(stride))
}

// farParts are r, lse and dots.
const farParts = 3

// attentionPackTask copies size columns from first on of each part.
type attentionPackTask struct {
	dst                       []float32
	from                      [farParts][]float32
	width, first, size, parts int
}

func (k *attentionPackTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		to := k.dst[r*k.parts*k.size:]
		for p, from := range k.from[:k.parts] {
			copy(to[p*k.size:][:k.size], from[r*k.width+k.first:])
		}
	}
}

// chunk processes rows in batches. In a batch, all values that depend on scores are computed
// before rows are read.
func (k *attentionTask) chunk(lo, hi int) {
	b := takeEdgeBatch()
	b.row, b.end, b.at = lo, hi, 0
	for b.fill(k) {
		for i := range b.segments[:b.count] {
			k.weights(b, &b.segments[i])
		}
		for i := range b.segments[:b.count] {
			k.rows(b, &b.segments[i])
		}
	}
	b.release()
}

// columns returns the columns of the group in row r of x.
func (k *attentionTask) columns(x []float32, width, r int) []float32 {
	return x[r*width+k.group*k.Width:][:k.size*k.Width]
}

// nearGradient returns the destination of the gradient of row r's near value.
func (k *attentionTask) nearGradient(r int) []float32 {
	if k.Dynamic {
		return k.columns(k.dst, k.dstWidth, r)
	}
	if k.op == backToSources {
		return k.dst[r*k.dstWidth+k.Columns()+k.group:][:k.size]
	}
	return k.dst[r*k.dstWidth+k.group:][:k.size]
}

// weights computes a segment's values that depend on scores.
func (k *attentionTask) weights(b *edgeBatch, s *segment) {
	if !k.Dynamic {
		at := s.row*k.Heads + k.group
		if k.op == backToSources {
			at = s.row*k.dstWidth + k.Columns() + k.group
		}
		k.repeat(&b.near, k.near[at:])
	}
	switch k.op {
	case attend:
		k.attend(b, s)
	case backToTargets:
		b.score(k, s)
		b.draw(k, s)
	default:
		b.scoreEnds(k, s)
		b.draw(k, s)
	}
}

// attend computes the weights of a segment, and rescales its row's partial result to the
// largest score.
func (k *attentionTask) attend(b *edgeBatch, s *segment) {
	dst, stats := k.columns(k.dst, k.dstWidth, s.row), rowOf(k.stats, s.row, 2*k.Heads)
	tops, sums := stats[k.group:][:k.size], stats[k.Heads+k.group:][:k.size]
	signed, signs := k.signedRow(s.row)
	if s.first && !k.merge {
		clear(dst)
		clear(sums)
		clear(signed)
		clear(signs)
		for h := range tops {
			tops[h] = float32(math.Inf(-1))
		}
	}
	k.repeat(&b.top, tops)
	b.score(k, s)
	if k.step < len(b.top) { // the largest score of each head is in its first lane
		k.repeat(&b.top, b.top[:k.size])
	}
	for h := range tops {
		if tops[h] != b.top[h] && sums[h] != 0 {
			f := float32(elementary.Exp(float64(tops[h]) - float64(b.top[h])))
			sums[h] *= f
			scale(k.set, dst[h*k.Width:][:k.Width], f)
			if k.signed != nil {
				scale(k.set, signed[h*k.Width:][:k.Width], f)
				signs[h] *= f
			}
		}
		tops[h] = b.top[h]
	}
	b.draw(k, s)
	b.sum, b.signed = avx.Near{}, avx.Near{}
	b.weights(k, s)
	if k.signed != nil {
		foldSum(signs, &b.signed, k.step)
	}
	foldSum(sums, &b.sum, k.step)
}

// rows processes the rows of a segment's far vertices.
func (k *attentionTask) rows(b *edgeBatch, s *segment) {
	switch k.op {
	case attend:
		dst := k.columns(k.dst, k.dstWidth, s.row)
		signed, _ := k.signedRow(s.row)
		b.weigh(k, dst, signed, s)
	case backToTargets:
		k.backToTarget(b, s)
	default:
		k.backToSource(b, s)
	}
}

// backToTarget computes the gradient of r of a row.
func (k *attentionTask) backToTarget(b *edgeBatch, s *segment) {
	at := s.row*k.Heads + k.group
	dst := k.nearGradient(s.row)
	if s.first && !k.merge {
		clear(dst)
		k.clearAlong(s.row)
	}
	k.repeat(&b.nearLSE, k.LSE[at:])
	k.repeat(&b.nearDots, k.Dots[at:])
	row := k.columns(k.Grad, k.Columns(), s.row)
	b.sum = avx.Near{}
	for at := 0; at < s.n; at += blockEdges {
		block := s.block(at, k.step)
		b.slopes(k, row, &block)
		if k.Dynamic {
			b.leakyGradient(k, dst, &block)
		}
	}
	if !k.Dynamic {
		foldSum(dst, &b.sum, k.step)
	}
}

// backToSource computes the gradient of an emitted row.
func (k *attentionTask) backToSource(b *edgeBatch, s *segment) {
	dst := k.columns(k.dst, k.dstWidth, s.row)
	if s.first {
		clear(dst)
	}
	row := k.columns(k.near, k.dstWidth, s.row)
	b.sum = avx.Near{}
	for at := 0; at < s.n; at += blockEdges {
		block := s.block(at, k.step)
		b.slopes(k, row, &block)
		b.weigh(k, dst, nil, &block)
		if k.Dynamic {
			b.leakyGradient(k, dst, &block)
		}
	}
	if k.Dynamic {
		return
	}
	dl := k.nearGradient(s.row)
	if s.first {
		clear(dl)
	}
	foldSum(dl, &b.sum, k.step)
}
