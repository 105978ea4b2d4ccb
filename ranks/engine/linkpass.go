package engine

import (
	"slices"
	"sync"

	"siafu/kernels/objective"
)

// Pairs are scored, and their gradients found, in pieces that do not depend on how many
// workers there are: losses are added in order of pieces, an own row's gradient in order of
// its pairs, and that of the other end in order of all pairs in hand.

const (
	pieceOfRows  = 128  // own vertices, all of whose pairs are a piece of the loss
	pieceOfPairs = 8192 // that have nothing in common
	pairBlock    = 256  // pairs of a row, whose other rows stay in a cache from product to sum
)

// pairList is pairs in hand: own vertices lo..hi-1, each with pairs of local ids, of which
// those of lo begin with others[0].
type pairList struct {
	begin    []int64 // v has begin[v+1]-begin[v] of them [own+1]
	lo, hi   int
	others   []uint32
	ids      []uint32 // those of others in the dataset, of pairs that are drawn and scored with dropout
	edges    bool     // they are edges
	mirrored bool     // each pair is there from either end
}

// of are the others of vertex v.
func (l *pairList) of(v int) []uint32 {
	return l.others[l.begin[v]-l.begin[l.lo] : l.begin[v+1]-l.begin[l.lo]]
}

// until is where the vertices from lo on have about as many pairs as may be in hand, the last
// one all of its own.
func (p *pairing) until(begin []int64, lo int) int {
	i, _ := slices.BinarySearch(begin[lo:], begin[lo]+p.most)
	return min(max(lo+i, lo+1), len(begin)-1)
}

// hand is room of pairs in hand, kept between passes.
type hand struct {
	others []uint32
	ids    []uint32
	slopes []float32
	losses []float64 // by piece
	counts counts
}

// counts are the scores of an evaluation's training pairs, in as many histograms as have been
// counted into at a time. They hold integers: which worker adds to which is of no account.
type counts struct {
	lock       sync.Mutex
	idle, made []*objective.Histogram
}

// take takes a histogram to count into, which is given back.
func (c *counts) take() *objective.Histogram {
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

func (c *counts) give(h *objective.Histogram) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.idle = append(c.idle, h)
}

// total moves all that has been counted to one histogram.
func (c *counts) total(to *objective.Histogram) {
	clear(to[:])
	for _, h := range c.made {
		for i, n := range h {
			to[i] += n
		}
		clear(h[:])
	}
}

// sized is *room with n elements.
func sized[T any](room *[]T, n int) []T {
	*room = slices.Grow((*room)[:0], n)[:n]
	return *room
}

// overRows runs body for pieces of own vertices, side by side.
func (p *pairing) overRows(lo, hi int, body func(piece, lo, hi int)) {
	p.team.Run((hi-lo+pieceOfRows-1)/pieceOfRows, 1, func(k, _ int) {
		body(k, lo+k*pieceOfRows, min(hi, lo+(k+1)*pieceOfRows))
	})
}

// learn adds to what has been found the loss of pairs in hand and, in training, to the
// gradients of their ends.
func (p *pairing) learn(l pairList, train bool) {
	losses := sized(&p.hand.losses, (l.hi-l.lo+pieceOfRows-1)/pieceOfRows)
	if train && !l.mirrored {
		sized(&p.hand.slopes, len(l.others))
	}
	if p.head != nil {
		p.learnByHead(&l, losses, train)
	} else {
		p.overRows(l.lo, l.hi, func(k, lo, hi int) { losses[k] = p.piece(&l, lo, hi, train) })
	}
	scale := 1 / float64(p.total)
	if l.mirrored {
		scale /= 2
	}
	for _, loss := range losses {
		p.found.loss += scale * loss
	}
	if train && !l.mirrored {
		p.push(&l)
	}
}

// piece is the loss of the pairs of vertices lo..hi-1, not divided by their number. In
// training it adds to the gradients of these vertices, and keeps the slopes of pairs for
// push unless they are mirrored.
func (p *pairing) piece(l *pairList, lo, hi int, train bool) (loss float64) {
	var counted *objective.Histogram
	if p.counting {
		counted = p.hand.counts.take()
		defer p.hand.counts.give(counted)
	}
	var room [pairBlock]float32
	scale := 1 / float64(p.total)
	for v := lo; v < hi; v++ {
		x, first := p.rowOf(uint32(v)), int(l.begin[v]-l.begin[l.lo])
		for ids := l.of(v); len(ids) > 0; {
			n := min(len(ids), pairBlock)
			scores := room[:n]
			if train && !l.mirrored {
				scores = p.hand.slopes[first : first+n]
			}
			p.team.DotsOf(scores, x, p.x, l.others[first:])
			if counted != nil {
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

// push adds to the gradients of the other ends of pairs. A worker has some of the vertices,
// and goes through all pairs for them.
func (p *pairing) push(l *pairList) {
	n, shares := len(p.x)/p.width, p.team.Workers()
	one := []float32{1}
	p.team.Run(shares, 1, func(k, _ int) {
		lo, hi := uint32(n*k/shares), uint32(n*(k+1)/shares)
		at := 0
		for v := l.lo; v < l.hi; v++ {
			for _, u := range l.of(v) {
				if lo <= u && u < hi {
					rows, id, weight := p.x, [1]uint32{uint32(v)}, one
					if p.head != nil {
						rows, id[0] = p.head.turned, uint32(at)
					} else {
						weight = p.hand.slopes[at : at+1]
					}
					p.team.AddChosen(p.row(p.grad, p.grads, int(u)), rows, id[:], weight)
				}
				at++
			}
		}
	})
}
