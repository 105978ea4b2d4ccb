package multilevel

import (
	"cmp"
	"slices"
)

// excessMove is a possible move of vertex v to part to. v is in a part that exceeds its limits.
// price is the number of edges that the move cuts, per unit of excess that it removes.
type excessMove struct {
	v, to uint32
	price float64
}

// balanceRounds is the maximum number of rounds of balance. Each round prices all moves again.
const balanceRounds = 10

// balance moves vertices out of parts that exceed their limits. Cheap moves are made first. It
// ends when all parts are within their limits, or when no move of one vertex lowers the excess.
func (r *refiner) balance() {
	for range balanceRounds {
		moves := r.movesOut()
		slices.SortFunc(moves, func(a, b excessMove) int {
			return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.v, b.v))
		})
		moved := false
		for _, m := range moves {
			// Other vertices have moved since this move was priced. If its price has more than
			// doubled, the move is left to the next round.
			if now, ok := r.cheapestMove(m.v); ok && now.price <= max(2*m.price, 0) {
				r.move(m.v, now.to)
				moved = true
			}
		}
		if !moved {
			return
		}
	}
}

// movesOut returns the cheapest move of each vertex in a part that exceeds its limits.
func (r *refiner) movesOut() []excessMove {
	var moves []excessMove
	for v, p := range r.owner {
		if r.parts[p].within(r.limits[p]) {
			continue
		}
		if m, ok := r.cheapestMove(uint32(v)); ok {
			moves = append(moves, m)
		}
	}
	return moves
}

// cheapestMove returns the cheapest move of v that lowers the total excess of all parts.
//
// Design note: the destination may exceed its limits after the move. Assume that some parts have
// too many edges and all others have too many vertices. Then no part has room for v, and only
// moves that slightly overfill another part lower the total excess.
func (r *refiner) cheapestMove(v uint32) (best excessMove, ok bool) {
	w, p := r.g.weight[v], r.owner[v]
	here := excess(r.parts[p], r.limits[p]) - excess(r.parts[p].minus(w), r.limits[p])
	if here <= 0 {
		return best, false
	}
	own := int64(r.gains.connection(v, p))
	for q := range r.parts {
		there := excess(r.parts[q].plus(w), r.limits[q]) - excess(r.parts[q], r.limits[q])
		if uint32(q) == p || here-there <= here*1e-9 { // the tolerance excludes rounding errors
			continue
		}
		m := excessMove{v, uint32(q), price(own-int64(r.gains.connection(v, uint32(q))), here-there)}
		if !ok || m.price < best.price {
			best, ok = m, true
		}
	}
	return best, ok
}

// price returns the loss (the increase of the cut) per unit of removed excess. A negative loss is
// multiplied by the removed excess instead, so that more removed excess is always better.
func price(loss int64, freed float64) float64 {
	if loss < 0 {
		return float64(loss) * freed
	}
	return float64(loss) / freed
}

// excess returns the sum of (w/limit - 1)² over the weights w of a part that exceed their limit.
func excess(part, limit weights) float64 {
	sum := 0.0
	for i, w := range part {
		if w > limit[i] {
			e := float64(w)/float64(limit[i]) - 1
			sum += float64(e * e)
		}
	}
	return sum
}

// totalExcess returns the excess of all parts.
func (r *refiner) totalExcess() float64 {
	sum := 0.0
	for p := range r.parts {
		sum += excess(r.parts[p], r.limits[p])
	}
	return sum
}
