package engine

import (
	"slices"
	"sync"

	"siafu/kernels"
	"siafu/kernels/objective"
)

// Pairs are scored, and their gradients computed, in pieces that do not depend on the number
// of workers. Losses are added in the order of pieces, an own row's gradient in the order of
// its pairs, and the other end's gradient in the order of all current pairs.

const (
	pieceOfRows  = 128  // own vertices; all their pairs are a piece of the loss
	pieceOfPairs = 8192 // pairs with no common row
	pairBlock    = 256  // pairs of a row; the other rows stay in cache from product to sum
)

// pairList is the current pairs: own vertices lo..hi-1, each with pairs of local ids. The
// pairs of lo begin with others[0].
type pairList struct {
	begin    []int64 // vertex v has begin[v+1]-begin[v] pairs [own+1]
	lo, hi   int
	others   []uint32
	ids      []uint32 // dataset ids of others, for sampled pairs that are scored with dropout
	edges    bool     // the pairs are edges
	mirrored bool     // each pair is listed from both ends
}

// pairsOf returns the other ends of the pairs of vertex v.
func (l *pairList) pairsOf(v int) []uint32 {
	return l.others[l.begin[v]-l.begin[l.lo] : l.begin[v+1]-l.begin[l.lo]]
}

// chunkEnd returns the end of the chunk that starts at vertex lo: about maxPairs pairs, and
// always all pairs of its last vertex.
func (p *pairing) chunkEnd(begin []int64, lo int) int {
	i, _ := slices.BinarySearch(begin[lo:], begin[lo]+p.maxPairs)
	return min(max(lo+i, lo+1), len(begin)-1)
}

// pairBuffers are the buffers of the current pairs, reused between passes.
type pairBuffers struct {
	others     []uint32
	ids        []uint32
	slopes     []float32
	losses     []float64 // by piece
	histograms histogramPool
}

// histogramPool has the scores of an evaluation's training pairs, in one histogram per
// concurrent worker. Counts are integers, so the assignment of workers does not matter.
type histogramPool struct {
	lock       sync.Mutex
	idle, made []*objective.Histogram
}

// acquire returns a histogram to count into; release returns it to the pool.
func (c *histogramPool) acquire() *objective.Histogram {
	c.lock.Lock()
	defer c.lock.Unlock()
	if len(c.idle) == 0 {
		c.made = append(c.made, new(objective.Histogram))
		c.idle = append(c.idle, c.made[len(c.made)-1])
	}
	h := c.idle[len(c.idle)-1]
	c.idle = c.idle[:len(c.idle)-1]
	return h
}

func (c *histogramPool) release(h *objective.Histogram) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.idle = append(c.idle, h)
}

// mergeInto moves all that has been counted to one histogram.
func (c *histogramPool) mergeInto(to *objective.Histogram) {
	clear(to[:])
	for _, h := range c.made {
		for i, n := range h {
			to[i] += n
		}
		clear(h[:])
	}
}

// resize sets the length of *buffer to n, and returns it.
func resize[T any](buffer *[]T, n int) []T {
	*buffer = slices.Grow((*buffer)[:0], n)[:n]
	return *buffer
}

// forEachPiece runs body for pieces of own vertices in parallel.
func (p *pairing) forEachPiece(lo, hi int, body func(piece, lo, hi int)) {
	p.team.Run((hi-lo+pieceOfRows-1)/pieceOfRows, 1, func(k, _ int) {
		body(k, lo+k*pieceOfRows, min(hi, lo+(k+1)*pieceOfRows))
	})
}

// addPairLoss adds the loss of the current pairs to the findings and, in training, their
// gradients to both ends.
func (p *pairing) addPairLoss(l pairList, train bool) {
	losses := resize(&p.buffers.losses, (l.hi-l.lo+pieceOfRows-1)/pieceOfRows)
	if train && !l.mirrored {
		resize(&p.buffers.slopes, len(l.others))
	}
	p.pairs.loss(p, &l, losses, train)
	scale := 1 / float64(p.total)
	if l.mirrored {
		scale /= 2
	}
	for _, loss := range losses {
		p.found.loss += float64(scale * loss)
	}
	if train && !l.mirrored {
		p.addOtherGrads(&l)
	}
}

// scorer scores pairs of rows.
type scorer interface {
	// begin sets the weights and the dropout of a pass, and clears the gradient of the weights.
	begin(weights []float32, drop kernels.PairDropout)
	// sumGrads completes the gradient of the weights, and weightGrad returns it.
	sumGrads()
	weightGrad() []float32
	// scores scores pairs from first to the last of scores. relations is nil unless the graph is relational.
	scores(p *pairing, scores []float32, rows, others []uint32, relations []uint16, first int)
}

// pairScorer also computes gradients.
type pairScorer interface {
	scorer
	// masks reports whether scores of the pass have dropout.
	masks() bool
	// loss computes the losses of the pieces of current pairs. In training it adds the gradients of own rows
	// and, if pairs are not mirrored, prepares otherGrad.
	loss(p *pairing, l *pairList, losses []float64, train bool)
	// otherGrad returns the gradient of the other end of the pair at a position, whose own row is v: a weight
	// times one of rows.
	otherGrad(p *pairing, at int, v uint32) (rows []float32, row uint32, weight []float32)
}

// dotProduct scores a pair by the dot product of its rows.
type dotProduct struct{}

func (dotProduct) begin([]float32, kernels.PairDropout) {}

func (dotProduct) masks() bool { return false }

func (dotProduct) sumGrads() {}

func (dotProduct) weightGrad() []float32 { return nil }

func (dotProduct) loss(p *pairing, l *pairList, losses []float64, train bool) {
	p.forEachPiece(l.lo, l.hi, func(k, lo, hi int) { losses[k] = p.pieceLoss(l, lo, hi, train) })
}

func (dotProduct) otherGrad(p *pairing, at int, v uint32) (rows []float32, row uint32, weight []float32) {
	return p.x, v, p.buffers.slopes[at : at+1]
}

// scores implements pairScorer. Consecutive pairs with the same row are scored in one call.
func (dotProduct) scores(p *pairing, scores []float32, rows, others []uint32, _ []uint16, first int) {
	for lo, hi := first, first; lo < len(scores); lo = hi {
		for hi < len(scores) && rows[hi] == rows[lo] {
			hi++
		}
		p.team.DotsOf(scores[lo:hi], p.rowOf(rows[lo]), p.x, others[lo:])
	}
}

// pieceLoss returns the loss of the pairs of vertices lo..hi-1, not divided by their number. In
// training it adds to the gradients of these vertices, and stores the slopes of pairs for
// addOtherGrads unless they are mirrored.
func (p *pairing) pieceLoss(l *pairList, lo, hi int, train bool) (loss float64) {
	var counted *objective.Histogram
	if p.evaluates {
		counted = p.buffers.histograms.acquire()
		defer p.buffers.histograms.release(counted)
	}
	var buffer [pairBlock]float32
	scale := 1 / float64(p.total)
	for v := lo; v < hi; v++ {
		x, first := p.rowOf(uint32(v)), int(l.begin[v]-l.begin[l.lo])
		for ids := l.pairsOf(v); len(ids) > 0; {
			n := min(len(ids), pairBlock)
			scores := buffer[:n]
			if train && !l.mirrored {
				scores = p.buffers.slopes[first : first+n]
			}
			p.team.DotsOf(scores, x, p.x, l.others[first:])
			if p.evaluates {
				counted.Count(scores, l.edges)
			}
			loss += objective.PairLosses(scores, l.edges, scale)
			if train {
				p.team.AddChosen(p.row(p.grad, nil, v), p.x, ids[:n], scores)
			}
			ids, first = ids[n:], first+n
		}
	}
	return loss
}

// addOtherGrads adds to the gradients of the other ends of pairs. Each worker updates some of
// the vertices, and reads all pairs for them.
func (p *pairing) addOtherGrads(l *pairList) {
	n, shares := len(p.x)/p.width, p.team.Workers()
	p.team.Run(shares, 1, func(k, _ int) {
		lo, hi := uint32(n*k/shares), uint32(n*(k+1)/shares)
		at := 0
		for v := l.lo; v < l.hi; v++ {
			for _, u := range l.pairsOf(v) {
				if lo <= u && u < hi {
					rows, row, weight := p.pairs.otherGrad(p, at, uint32(v))
					id := [1]uint32{row}
					p.team.AddChosen(p.row(p.grad, p.grads, int(u)), rows, id[:], weight)
				}
				at++
			}
		}
	})
}
