package kernels

import "siafu/kernels/internal/avx"

// A batch has batchValues values of edges and heads, enough to hide the latency of reading the
// scores' terms. The rows of a block's edges stay in the first-level cache between the product
// with them and their weighted sum.
const (
	batchValues = 16384
	blockEdges  = 64
)

// edgeBatch has the current edges of one worker, half a megabyte. Values are stored by edge,
// step floats each.
type edgeBatch struct {
	ids   [batchValues + avx.ScoresAhead]uint32 // of far rows: the current ones, then the next ones
	known int                                   // number of ids, including the next ones
	// where the features of current edges are: row r of Features as r, or row r of Self as ^r
	featureRows [batchValues]int64
	segments    [batchValues / avx.Heads]segment
	count       int
	row, end    int   // remaining rows: row..end-1
	at          int64 // number of finished edges of row; the self loop is the first edge

	near, top, sum, signed, nearLSE, nearDots, ones avx.Near

	scores, keep, lse, dots [batchValues + avx.Slack]float32

	dq      [blockEdges*avx.Heads + avx.Slack]float32
	nearIDs [avx.Heads]uint32 // dataset ids, for dropout
	farIDs  [batchValues + avx.Heads]uint32

	// For edge features (dynamic_features.go): rows of far vertices plus the features'
	// contribution, gradients of scores times a feature, and 0, 1, 2 and so on.
	edgeRows [edgeRowValues + avx.Slack]float32
	scaled   [blockEdges*avx.Heads + avx.Slack]float32
	counting [blockEdges]uint32
}

// segment is n edges of a row: ids from id on, values from value on. A row is cut at the same
// edges whatever the batch contains and whatever edges are masked. Values written in whole
// vectors overwrite only later segments, before those are computed.
type segment struct {
	row, id, value, n int
	first             bool // of its row
}

// block returns the block that starts at edge at of a segment.
func (s *segment) block(at, step int) segment {
	return segment{row: s.row, id: s.id + at, value: s.value + at*step, n: min(blockEdges, s.n-at)}
}

// edgeBatches has idle batches, of all Teams: one for each worker that has run a chunk at the same time as others.
var edgeBatches = make(chan *edgeBatch, 1<<10)

// takeEdgeBatch returns an idle batch or, if there is none, a new one.
func takeEdgeBatch() *edgeBatch {
	select {
	case b := <-edgeBatches:
		return b
	default:
	}
	b := new(edgeBatch)
	for i := range b.ones {
		b.ones[i] = 1
	}
	for i := range b.counting {
		b.counting[i] = uint32(i)
	}
	return b
}

// release makes a batch idle.
func (b *edgeBatch) release() {
	select {
	case edgeBatches <- b:
	default:
	}
}

// fill adds the next rows to the batch. A row that does not fit into the rest of a batch
// starts the next one.
func (b *edgeBatch) fill(k *attentionTask) bool {
	b.count, b.known = 0, 0
	for value := 0; b.row < b.end && b.count < len(b.segments); b.count++ {
		edges := k.edges(b.row) - b.at
		free := int64((k.most - value) / k.step)
		if edges > free && value > 0 {
			break
		}
		n := int(min(edges, free))
		s := &b.segments[b.count]
		*s = segment{row: b.row, id: b.known, value: value, first: b.at == 0}
		b.appendEdges(k, n)
		s.n = b.known - s.id
		value += (s.n + avx.Heads - 1) / avx.Heads * avx.Heads * k.step
		if b.at += int64(n); int64(n) == edges {
			b.row, b.at = b.row+1, 0
		}
	}
	if b.count > 0 {
		b.prefetch(k)
	}
	return b.count > 0
}

// edges returns the number of edges of a row, its self loop included.
func (k *attentionTask) edges(r int) int64 {
	if k.rowMask != nil && k.rowMask.has(uint32(k.first+r)) == 0 {
		return 0
	}
	n := k.End[r] - k.Begin[r]
	if k.SelfLoops {
		n++
	}
	return n
}

// appendEdges appends the unmasked of the next n edges of the row.
func (b *edgeBatch) appendEdges(k *attentionTask, n int) {
	from := k.Begin[b.row] + b.at
	if k.SelfLoops && b.at > 0 {
		from--
	} else if k.SelfLoops && n > 0 {
		b.ids[b.known] = uint32(k.first + b.row)
		if k.edge != nil {
			b.featureRows[b.known] = ^int64(b.row)
		}
		if k.columnMask == nil || k.columnMask.has(b.ids[b.known]) == 1 {
			b.known++
		}
		n--
	}
	cols := k.Cols[from : from+int64(n)]
	if k.columnMask != nil {
		b.known += k.edgeMask.copy(k.set, b.ids[b.known:], cols, from, k.columnMask)
		return
	}
	if k.edge != nil {
		k.placesOf(b.featureRows[b.known:][:n], from)
	}
	b.add(k, cols)
}

// add appends column ids.
func (b *edgeBatch) add(k *attentionTask, cols []uint32) {
	ids := b.ids[b.known:][:len(cols)]
	b.known += len(cols)
	if k.set != avx.None {
		k.set.Rebase(ids, cols, k.Base)
		return
	}
	for i, c := range cols {
		ids[i] = c - k.Base
	}
}

// prefetch appends the edges after the last row of the batch.
func (b *edgeBatch) prefetch(k *attentionTask) {
	end := k.End[b.segments[b.count-1].row]
	b.add(k, k.Cols[end:min(end+avx.Ahead, int64(len(k.Cols)))])
}

// repeat fills to with repetitions of the heads in from.
func (k *attentionTask) repeat(to *avx.Near, from []float32) {
	if k.set != avx.None {
		k.set.Repeat(to, from[:k.size], k.step)
		return
	}
	for i := range to {
		if h := i & (k.step - 1); h < k.size {
			to[i] = from[h]
		}
	}
}

// score computes scores, from the first value of far vertices.
func (b *edgeBatch) score(k *attentionTask, s *segment) {
	if k.Dynamic {
		b.scoreRows(k, s)
		return
	}
	ids, scores := b.ids[s.id:][:s.n], b.scores[s.value:]
	if k.set != avx.None {
		k.set.Scores(scores, k.step, k.size, &b.near, k.values, k.stride, ids, k.Slope, &b.top)
		return
	}
	for e, id := range ids {
		for h := range k.size {
			v := leaky(b.near[h]+k.values[int(id)*k.stride+h], k.Slope)
			scores[e*k.step+h] = v
			if v > b.top[h] {
				b.top[h] = v
			}
		}
	}
}

// scoreEnds computes scores in the backward pass to sources. It also collects lse and dots of
// each edge's attending vertex.
func (b *edgeBatch) scoreEnds(k *attentionTask, s *segment) {
	if k.set != avx.None && !k.Dynamic {
		k.set.Ends(b.scores[s.value:], b.lse[s.value:], b.dots[s.value:], k.step, k.size, &b.near, k.values, b.ids[s.id:][:s.n], k.Slope)
		return
	}
	b.score(k, s)
	b.pick(k, s, b.lse[:], 1)
	b.pick(k, s, b.dots[:], 2)
}

// pick copies a later value of far vertices: its score by a zero and a slope of 1.
func (b *edgeBatch) pick(k *attentionTask, s *segment, to []float32, part int) {
	if s.n == 0 {
		return
	}
	ids, far := b.ids[s.id:][:s.n], k.values[(k.parts()-farParts+part)*k.size:]
	if k.set != avx.None {
		var zero, top avx.Near
		k.set.Scores(to[s.value:], k.step, k.size, &zero, far, k.stride, ids, 1, &top)
		return
	}
	for e, id := range ids {
		copy(to[s.value+e*k.step:][:k.size], far[int(id)*k.stride:])
	}
}

// foldSum adds the lanes of a sum to the heads in dst, halves first.
func foldSum(dst []float32, sum *avx.Near, step int) {
	for half := len(sum) / 2; half >= step; half /= 2 {
		for i := range half {
			sum[i] += sum[i+half]
		}
	}
	for h := range dst {
		dst[h] += sum[h]
	}
}

// weights turns scores into keep·e^(score-top), and adds the sums without keep to sum. With
// signed sums, weights get the signs of scores, and their sums are added to signed.
func (b *edgeBatch) weights(k *attentionTask, s *segment) {
	n, keep, scores := s.n*k.step, b.keepFactors(k, s), b.scores[s.value:]
	if k.set != avx.None {
		var signed *avx.Near
		if k.signed != nil {
			signed = &b.signed
		}
		k.set.Weights(scores, n, keep, &b.top, &b.sum, signed)
		return
	}
	for i, v := range scores[:n] {
		lane := i % avx.Heads
		e := exp32(v - b.top[lane])
		b.sum[lane] += e
		if k.signed != nil && !(v > 0) {
			e = -e
		}
		b.signed[lane] += e
		scores[i] = e * keep.At(i)
	}
}

// slopes turns the scores of a block into weights. It adds the gradients of l + r to the first
// lanes of sum, edge by edge, so that edges without a gradient may be omitted. row belongs to
// the near vertex.
func (b *edgeBatch) slopes(k *attentionTask, row []float32, s *segment) {
	setDots(k.set, b.dq[:], k.step, k.size, row, k.far[k.group*k.Width:], k.farWidth, b.ids[s.id:b.known], s.n)
	if k.Dynamic {
		b.slopesOfEdges(k, s)
		return
	}
	n, keep, scores := s.n*k.step, b.keepFactors(k, s), b.scores[s.value:]
	lse, dots := b.ends(k, s)
	switch {
	case k.set != avx.None && k.step == avx.Heads:
		k.set.Slopes(scores, b.dq[:], n, keep, lse, dots, k.Slope, &b.sum)
		return
	case k.set != avx.None:
		k.set.SlopesOfEdges(scores, b.dq[:], n, keep, lse, dots, k.Slope)
	default:
		slopesGo(scores, b.dq[:n], keep, lse, dots, k.Slope)
	}
	for h := range b.sum[:k.size] {
		sum := b.sum[h]
		for i := h; i < n; i += k.step {
			sum += b.dq[i]
		}
		b.sum[h] = sum
	}
}

// slopesGo computes avx.Set.SlopesOfEdges in plain Go.
func slopesGo(scores, dq []float32, keep, lse, dots avx.PerEdge, slope float32) {
	for i, v := range scores[:len(dq)] {
		p := exp32(v - lse.At(i))
		ds := p * (float32(dq[i]*keep.At(i)) - dots.At(i))
		if !(v > 0) {
			ds *= slope
		}
		dq[i], scores[i] = ds, keep.At(i)*p
	}
}

// setDots sets heads elements of dst, at every step, to the products of row
// with the next of n rows of x.
func setDots(set avx.Set, dst []float32, step, heads int, row, x []float32, stride int, ids []uint32, n int) {
	if set != avx.None && len(row) > 0 {
		set.Dots(dst, step, heads, row, x, stride, ids, n)
		return
	}
	plainDots(dst, step, heads, row, x, stride, ids[:n])
}

// weigh adds the rows of far vertices to dst, times the weights. With signed, it adds them to
// signed, and times the absolute weights to dst.
func (b *edgeBatch) weigh(k *attentionTask, dst, signed []float32, s *segment) {
	if s.n == 0 {
		return
	}
	ids, weights, x := b.ids[s.id:b.known], b.scores[s.value:], k.far[k.group*k.Width:]
	if k.op == backToSources {
		ids = ids[:s.n] // the earlier ones have been read
	}
	if k.mixesHeads() {
		weighRows(k.set, dst, signed, x, k.farWidth, ids, weights, k.step, s.n, k.heads[:])
		return
	}
	for h := range k.size {
		var signs []float32
		if signed != nil {
			signs = rowOf(signed, h, k.Width)
		}
		weighRows(k.set, rowOf(dst, h, k.Width), signs, x[h*k.Width:], k.farWidth, ids, weights[h:], k.step, s.n, nil)
	}
}
