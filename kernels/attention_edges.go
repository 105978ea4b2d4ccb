package kernels

import (
	"math"

	"siafu/kernels/internal/avx"
)

// blockEdges is how many edges are in hand at a time: their rows stay in the
// first cache between the product with them and their weighted sum.
const blockEdges = 64

// edgeBlock is the edges of a row that are in hand. Values lie edge after edge,
// step floats each.
type edgeBlock struct {
	ids      [blockEdges + avx.Ahead]uint32 // of far rows; behind those in hand the next ones
	n, known int                            // edges in hand, and with those that follow
	row      int
	self     bool  // the self loop is yet to come
	at, end  int64 // edges yet to come

	near, top, sum, nearLSE, nearDots, ones avx.Near

	scores, dq, keep, lse, dots [blockEdges*avx.Heads + avx.Slack]float32

	nearIDs [avx.Heads]uint32 // dataset ids, for dropout
	farIDs  [blockEdges + avx.Heads]uint32
}

// start takes the row r in hand.
func (b *edgeBlock) start(k *attentionTask, r int) {
	b.row, b.self, b.at, b.end = r, k.SelfLoops, k.Begin[r], k.End[r]
	if k.drop {
		for i := range b.nearIDs {
			b.nearIDs[i] = k.datasetID(k.first + r)
		}
	}
}

// datasetID is that of a local vertex.
func (k *attentionTask) datasetID(local int) uint32 { return k.masks[0].id(local) }

// next takes the next edges in hand; the self loop comes first.
func (b *edgeBlock) next(k *attentionTask) bool {
	b.n = 0
	if b.self {
		b.ids[0], b.n, b.self = uint32(b.row), 1, false
	}
	cols := k.Cols[b.at:min(b.at+int64(len(b.ids)-b.n), int64(len(k.Cols)))]
	ids := b.ids[b.n:][:len(cols)]
	if k.set != avx.None {
		k.set.Less(ids, cols, k.Base)
	} else {
		for i, c := range cols {
			ids[i] = c - k.Base
		}
	}
	b.known = b.n + len(cols)
	taken := min(int64(blockEdges-b.n), b.end-b.at)
	b.n += int(taken)
	b.at += taken
	return b.n > 0
}

// spread repeats the heads in from to fill to.
func (b *edgeBlock) spread(to *avx.Near, from []float32, step, size int) {
	for i := range to {
		if h := i & (step - 1); h < size {
			to[i] = from[h]
		}
	}
}

// score computes scores, from the first value of far vertices.
func (b *edgeBlock) score(k *attentionTask) {
	ids, far, stride := b.ids[:b.n], k.values, k.stride
	if k.set != avx.None {
		k.set.Scores(b.scores[:], k.step, k.size, &b.near, far, stride, ids, k.Slope, &b.top)
		return
	}
	for e, id := range ids {
		for h := range k.size {
			s := b.near[h] + far[int(id)*stride+h]
			s = max(s, s*k.Slope)
			b.scores[e*k.step+h] = s
			if s > b.top[h] {
				b.top[h] = s
			}
		}
	}
}

// pick copies a later value of far vertices: its score by a zero and a slope of 1.
func (b *edgeBlock) pick(k *attentionTask, to []float32, part int) {
	ids, far, stride := b.ids[:b.n], k.values[part*k.size:], k.stride
	if k.set != avx.None {
		var zero, top avx.Near
		k.set.Scores(to, k.step, k.size, &zero, far, stride, ids, 1, &top)
		return
	}
	for e, id := range ids {
		copy(to[e*k.step:][:k.size], far[int(id)*stride:])
	}
}

// foldTop repeats the largest scores of heads; package avx has them in the
// first lanes.
func (b *edgeBlock) foldTop(step int) {
	for i := step; i < len(b.top); i++ {
		b.top[i] = b.top[i-step]
	}
}

// foldSum adds the lanes of sum to the heads in dst, halves first.
func (b *edgeBlock) foldSum(dst []float32, step int) {
	for half := len(b.sum) / 2; half >= step; half /= 2 {
		for i := range half {
			b.sum[i] += b.sum[i+half]
		}
	}
	for h := range dst {
		dst[h] += b.sum[h]
	}
}

// kept is what dropout multiplies by.
func (b *edgeBlock) kept(k *attentionTask) avx.PerEdge {
	if k.drop {
		return avx.PerEdge{Vals: b.keep[:], Step: avx.Heads}
	}
	return avx.PerEdge{Vals: b.ones[:]}
}

// draw sets keep to what dropout multiplies the edges in hand by.
func (b *edgeBlock) draw(k *attentionTask) {
	if !k.drop {
		return
	}
	for e, id := range b.ids[:b.n] {
		b.farIDs[e] = k.datasetID(int(id + k.Base))
	}
	sources, targets := b.farIDs[:], b.nearIDs[:]
	if k.way == backToSources {
		sources, targets = targets, sources
	}
	for i := range (k.size + philoxWords - 1) / philoxWords {
		m, keep := &k.masks[i], b.keep[i*philoxWords:]
		if k.set != avx.None {
			k.set.EdgeMask(&m.draw, keep, k.step, sources, targets, b.n)
			continue
		}
		m.edges(keep, k.step, min(k.size-i*philoxWords, philoxWords), sources, targets, b.n)
	}
}

// edges is avx.Set.EdgeMask of that many heads in plain Go.
func (m *mask) edges(keep []float32, step, heads int, sources, targets []uint32, n int) {
	for e := range n {
		u, v := sources[e%len(sources)], targets[e%len(targets)]
		words := Philox([4]uint32{u, v, m.epoch, m.layer}, m.key)
		for h := range heads {
			keep[e*step+h] = orZero(m.scale, words[h] <= m.draw.Last)
		}
	}
}

// weights turns scores into keep·e^(score-top), whose sums without keep it adds
// to sum.
func (b *edgeBlock) weights(k *attentionTask) {
	n, keep := b.n*k.step, b.kept(k)
	if k.set != avx.None {
		k.set.Weights(b.scores[:], n, keep, &b.top, &b.sum)
		return
	}
	for i, s := range b.scores[:n] {
		lane := i % avx.Heads
		e := float32(math.Exp(float64(s - b.top[lane])))
		b.sum[lane] += e
		b.scores[i] = e * keep.Vals[i/avx.Heads*keep.Step+lane]
	}
}

// products sets dq to the products of row with the rows of far vertices.
func (b *edgeBlock) products(k *attentionTask, row []float32) {
	setDots(k.set, b.dq[:], k.step, k.size, row, k.far[k.group*k.Width:], k.farWidth, b.ids[:b.known], b.n)
}

// setDots sets heads elements of dst, at every step, to the products of row
// with the next of n rows of x.
func setDots(set avx.Set, dst []float32, step, heads int, row, x []float32, stride int, ids []uint32, n int) {
	if set != avx.None && len(row) > 0 {
		set.Dots(dst, step, heads, row, x, stride, ids, n)
		return
	}
	width := len(row) / heads
	for e, id := range ids[:n] {
		for h := range heads {
			dst[e*step+h] = dot(rowOf(row, h, width), x[int(id)*stride+h*width:])
		}
	}
}

func dot(x, y []float32) (sum float32) {
	y = y[:len(x)]
	for j, v := range x {
		sum += v * y[j]
	}
	return sum
}

// slopes turns scores into weights, and adds the gradients of what they are
// the leaky values of to sum.
func (b *edgeBlock) slopes(k *attentionTask) {
	n, keep := b.n*k.step, b.kept(k)
	lse, dots := avx.PerEdge{Vals: b.nearLSE[:]}, avx.PerEdge{Vals: b.nearDots[:]}
	if k.way == backToSources {
		lse, dots = avx.PerEdge{Vals: b.lse[:], Step: avx.Heads}, avx.PerEdge{Vals: b.dots[:], Step: avx.Heads}
	}
	if k.set != avx.None {
		k.set.Slopes(b.scores[:], b.dq[:], n, keep, lse, dots, k.Slope, &b.sum)
		return
	}
	for i, s := range b.scores[:n] {
		lane, vector := i%avx.Heads, i/avx.Heads
		kept := keep.Vals[vector*keep.Step+lane]
		p := float32(math.Exp(float64(s - lse.Vals[vector*lse.Step+lane])))
		ds := p * (b.dq[i]*kept - dots.Vals[vector*dots.Step+lane])
		if !(s > 0) {
			ds *= k.Slope
		}
		b.sum[lane] += ds
		b.scores[i] = kept * p
	}
}

// weigh adds the weighted rows of far vertices to dst.
func (b *edgeBlock) weigh(k *attentionTask, dst []float32) {
	ids, x := b.ids[:b.known], k.far[k.group*k.Width:]
	if k.way == backToSources {
		ids = ids[:b.n] // they have been read
	}
	switch {
	case k.set == avx.None:
		b.weighGo(k, dst, x)
	case k.mixed():
		k.set.Weigh(dst, x, k.farWidth, ids, b.scores[:], k.step, b.n, k.heads[:])
	default:
		for h := range k.size {
			k.set.Weigh(rowOf(dst, h, k.Width), x[h*k.Width:], k.farWidth, ids, b.scores[h:], k.step, b.n, nil)
		}
	}
}

func (b *edgeBlock) weighGo(k *attentionTask, dst, x []float32) {
	for e, id := range b.ids[:b.n] {
		for h := range k.size {
			axpy1(rowOf(dst, h, k.Width), x[int(id)*k.farWidth+h*k.Width:], b.scores[e*k.step+h])
		}
	}
}
