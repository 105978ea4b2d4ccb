package multilevel

import "math"

const (
	// rounds of refinement at most; it ends when one lowers the cut by less
	// than a part in worthwhile.
	rounds     = 8
	worthwhile = 500
	// patience is after how many moves that don't lead below the least cut a
	// round ends, or after a patientShare of the vertices. Six times as many
	// gain nothing.
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
	heap  heap    // of vertices that may move; those with another gain than key have been superseded
	key   []int64 // the highest gain of v that heap has; locked, if v has moved
	moves []move
}

// move is what was done.
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

// run brings the parts below their limits, where they are not, and then lowers
// the cut.
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

// round is one of Fiduccia and Mattheyses (DAC 1982) with k parts: each vertex
// moves at most once, always the one with the highest gain into a part with
// room for it, even where that is a loss; at the end the moves after the least
// cut are taken back. It returns by how much the cut fell.
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

// undo takes back the moves from the given one on.
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

// offer tells the heap if v's gain has risen. That one has fallen is seen when
// its turn comes.
func (r *refiner) offer(v uint32) {
	if gain := r.highest(v); gain > r.key[v] {
		r.key[v] = gain
		r.heap.push(entry{gain, v})
	}
}

// offerNeighbours tells of those of v, which has moved. In its new part, none
// has gained.
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

// lower puts v back with the gain that it has now.
func (r *refiner) lower(v uint32, gain int64) {
	r.key[v] = gain
	if gain != unmovable {
		r.heap.push(entry{gain, v})
	}
}

// highest is the gain of v's best move to a part of a neighbour, whether there
// is room or not: unmovable where all neighbours are in its own.
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

// best is the part with room for v to which it is connected most, of equals
// the first in its row, and the gain of a move there.
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

// cut is the weight of the edges between parts.
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
