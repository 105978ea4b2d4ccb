package multilevel

import "math"

const (
	// Maximum rounds of refinement; it ends if a round lowers the cut by less than 1/worthwhile.
	rounds     = 8
	worthwhile = 500
	// A round ends after patience moves without a new least cut, or after a patientShare of
	// the vertices. Six times the patience gains nothing.
	patience     = 50
	patientShare = 50
)

// refiner moves vertices between parts.
type refiner struct {
	g      *level
	owner  []uint32
	parts  []weights
	limits []weights // of parts
	gains  *gains

	// Of a round:
	heap  heap    // vertices that may move; an entry with another gain than key is outdated
	key   []int64 // the highest gain of v that heap has; locked, if v has moved
	moves []move
}

// move records a move.
type move struct{ v, from uint32 }

const (
	unmovable = math.MinInt64
	locked    = math.MaxInt64
)

// newRefiner works on owner in place.
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

// run balances parts that exceed their limits, and then lowers the cut.
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

// round is a pass of Fiduccia and Mattheyses (DAC 1982) with k parts. Each vertex moves at
// most once, the one with the highest gain first, into a part with room for it, even at a
// loss. At the end, moves after the least cut are undone. It returns the decrease of the cut.
func (r *refiner) round() int64 {
	r.heap, r.moves = r.heap[:0], r.moves[:0]
	for v := range r.key {
		r.key[v] = unmovable
		r.offer(uint32(v))
	}
	patience := max(patience, r.g.n()/patientShare)
	var gain, best int64
	kept := 0
	for len(r.heap) > 0 && len(r.moves)-kept < patience {
		e := r.heap.pop()
		if e.gain != r.key[e.v] {
			continue
		}
		to, now := r.best(e.v)
		if now < e.gain {
			r.lower(e.v, now)
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

// undo undoes the moves from the given one on.
func (r *refiner) undo(kept int) {
	for i := len(r.moves) - 1; i >= kept; i-- {
		r.move(r.moves[i].v, r.moves[i].from)
	}
}

// move puts v into part to.
func (r *refiner) move(v, to uint32) {
	from := r.owner[v]
	r.parts[from] = r.parts[from].minus(r.g.weight[v])
	r.parts[to] = r.parts[to].plus(r.g.weight[v])
	r.owner[v] = to
	r.g.each(v, func(u, w uint32) { r.gains.shift(u, from, to, w) })
}

// offer pushes v to the heap if its gain has risen. A fallen gain is detected when v is popped.
func (r *refiner) offer(v uint32) {
	if gain := r.highest(v); gain > r.key[v] {
		r.key[v] = gain
		r.heap.push(entry{gain, v})
	}
}

// offerNeighbours offers the neighbours of v, which has moved. Neighbours in its new part have
// not gained.
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

// lower pushes v again with its current gain.
func (r *refiner) lower(v uint32, gain int64) {
	r.key[v] = gain
	if gain != unmovable {
		r.heap.push(entry{gain, v})
	}
}

// highest returns the gain of v's best move to a neighbour's part, with or without room;
// unmovable if all neighbours are in v's part.
func (r *refiner) highest(v uint32) int64 {
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

// best returns the part with room for v and the largest connection, with ties the first in its
// row, and the gain of that move.
func (r *refiner) best(v uint32) (to uint32, gain int64) {
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

// cut returns the weight of the edges between parts.
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
	return sum / 2 // each is counted from both ends
}
