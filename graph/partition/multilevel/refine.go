package multilevel

import "math"

const (
	// Refinement has at most this number of rounds. It ends after a round that lowers the cut by
	// at most 1/worthwhile.
	rounds     = 8
	worthwhile = 500
	// A round ends if the cut has no new minimum for max(patience, n/patientShare) moves, where n
	// is the number of vertices. A limit six times as large does not reduce the cut.
	patience     = 50
	patientShare = 50
)

// refiner improves a partition of a level by moving vertices between parts.
type refiner struct {
	g      *level
	owner  []uint32  // [n] part of each vertex
	parts  []weights // weights of each part
	limits []weights // limits of each part
	gains  *gains

	// State of a round:
	heap  heap    // vertices that may move; an entry is outdated if its gain differs from key
	key   []int64 // [n] gain of each vertex's valid entry in heap, or unmovable or locked
	moves []move  // in the order in which they were made
}

// move records that v was moved out of part from.
type move struct{ v, from uint32 }

// Values of key that are not a gain.
const (
	unmovable = math.MinInt64 // the vertex has no entry in heap
	locked    = math.MaxInt64 // the vertex has moved in this round
)

// newRefiner returns a refiner that changes owner in place.
func newRefiner(g *level, owner []uint32, limits []weights) *refiner {
	r := &refiner{
		g: g, owner: owner, limits: limits, parts: make([]weights, len(limits)),
		gains: newGains(g, owner, len(limits)), key: make([]int64, g.n()),
	}
	for v, p := range owner {
		r.parts[p] = r.parts[p].plus(g.weight[v])
	}
	return r
}

// run balances the parts that exceed their limits, and then reduces the cut in several rounds.
func (r *refiner) run() {
	r.balance()
	cut := r.cut()
	for range rounds {
		gain := r.round()
		if cut -= gain; gain <= cut/worthwhile {
			break
		}
	}
}

// round is a pass of Fiduccia and Mattheyses (DAC 1982), for k parts. It repeatedly moves the
// vertex with the highest gain into a part with room for it, even if the gain is negative. Each
// vertex moves at most once. At the end, round undoes all moves after the minimum of the cut. It
// returns the decrease of the cut.
func (r *refiner) round() int64 {
	r.heap, r.moves = r.heap[:0], r.moves[:0]
	for v := range r.key {
		if r.key[v] = r.bestGain(uint32(v)); r.key[v] != unmovable {
			r.heap = append(r.heap, entry{r.key[v], uint32(v)})
		}
	}
	r.heap.order()
	patience := max(patience, r.g.n()/patientShare)
	var gain, best int64
	kept := 0
	for len(r.heap) > 0 && len(r.moves)-kept < patience {
		e := r.heap.pop()
		if e.gain != r.key[e.v] {
			continue
		}
		to, now := r.bestMove(e.v)
		if now < e.gain {
			r.pushAgain(e.v, now)
			continue
		}
		r.moves = append(r.moves, move{e.v, r.owner[e.v]})
		r.key[e.v] = locked
		r.move(e.v, to)
		r.offerNeighbours(e.v)
		if gain += now; gain > best {
			best, kept = gain, len(r.moves)
		}
	}
	r.undo(kept)
	return best
}

// undo undoes all moves except the first kept moves, the last move first.
func (r *refiner) undo(kept int) {
	for i := len(r.moves) - 1; i >= kept; i-- {
		r.move(r.moves[i].v, r.moves[i].from)
	}
}

// move moves v to part to.
func (r *refiner) move(v, to uint32) {
	from := r.owner[v]
	r.parts[from] = r.parts[from].minus(r.g.weight[v])
	r.parts[to] = r.parts[to].plus(r.g.weight[v])
	r.owner[v] = to
	r.g.eachNeighbour(v, func(u, w uint32) { r.gains.shift(u, from, to, w) })
}

// offer pushes v to the heap if its gain is higher than its key. If the gain has become lower,
// round notices this when it pops v.
func (r *refiner) offer(v uint32) {
	if gain := r.bestGain(v); gain > r.key[v] {
		r.key[v] = gain
		r.heap.push(entry{gain, v})
	}
}

// offerNeighbours calls offer for the neighbours of v after v has moved. It skips neighbours in the
// new part of v, because their gain has not increased.
func (r *refiner) offerNeighbours(v uint32) {
	in, _, out := r.g.links(v)
	for _, list := range [][]uint32{in, out} {
		for _, u := range list {
			if r.owner[u] != r.owner[v] && r.key[u] != locked {
				r.offer(u)
			}
		}
	}
}

// pushAgain pushes v with its current gain, unless v is unmovable.
func (r *refiner) pushAgain(v uint32, gain int64) {
	r.key[v] = gain
	if gain != unmovable {
		r.heap.push(entry{gain, v})
	}
}

// bestGain returns the gain of the best move of v to the part of a neighbour. It does not check
// whether the part has room. It returns unmovable if all neighbours are in the part of v.
func (r *refiner) bestGain(v uint32) int64 {
	var own, best uint32
	parts, weights := r.gains.row(v)
	for i, p := range parts {
		if p == r.owner[v] {
			own = max(own, weights[i])
		} else {
			best = max(best, weights[i])
		}
	}
	if best == 0 {
		return unmovable
	}
	return int64(best) - int64(own)
}

// bestMove returns the part with the largest connection to v, among the parts with room for v, and
// the gain of that move. Among equals it returns the first in the row of v. The gain is unmovable
// if no part of a neighbour has room.
func (r *refiner) bestMove(v uint32) (to uint32, gain int64) {
	var own, best uint32
	parts, weights := r.gains.row(v)
	for i, p := range parts {
		switch w := weights[i]; {
		case p == r.owner[v]:
			own = max(own, w)
		case w > best && r.parts[p].plus(r.g.weight[v]).within(r.limits[p]):
			best, to = w, p
		}
	}
	if best == 0 {
		return 0, unmovable
	}
	return to, int64(best) - int64(own)
}

// cut returns the total weight of the edges between different parts.
func (r *refiner) cut() int64 {
	sum := int64(0)
	for v, p := range r.owner {
		parts, weights := r.gains.row(uint32(v))
		for i, q := range parts {
			if q != p {
				sum += int64(weights[i])
			}
		}
	}
	return sum / 2 // each edge is counted at both ends
}
