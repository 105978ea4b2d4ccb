package multilevel

import (
	"cmp"
	"slices"
)

// relief is a move out of an overfilled part, and its cost: newly cut edges per unit of
// removed excess.
type relief struct {
	v, to uint32
	price float64
}

// balanceRounds is the maximum number of times that vertices are priced again.
const balanceRounds = 10

// balance moves vertices out of overfilled parts, the cheapest first, until
// none is overfilled or no move of one vertex lowers the excess.
func (r *refiner) balance() {
	for range balanceRounds {
		moves := r.reliefs()
		slices.SortFunc(moves, func(a, b relief) int {
			return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.v, b.v))
		})
		moved := false
		for _, m := range moves {
			// Others have moved since it was priced: moves that have become too expensive wait
			// for the next round.
			if now, ok := r.relieve(m.v); ok && now.price <= max(2*m.price, 0) {
				r.move(m.v, now.to)
				moved = true
			}
		}
		if !moved {
			return
		}
	}
}

// reliefs returns the moves of all vertices in overfilled parts.
func (r *refiner) reliefs() []relief {
	var moves []relief
	for v, p := range r.owner {
		if r.parts[p].within(r.limits[p]) {
			continue
		}
		if m, ok := r.relieve(uint32(v)); ok {
			moves = append(moves, m)
		}
	}
	return moves
}

// relieve returns the cheapest move of v that lowers the total excess of all parts.
//
// Design note: requiring a part with room for v is not enough. If some parts are full of edges
// and others of vertices, only moves that slightly overfill another part help.
func (r *refiner) relieve(v uint32) (best relief, ok bool) {
	w, p := r.g.weight[v], r.owner[v]
	here := excess(r.parts[p], r.limits[p]) - excess(r.parts[p].minus(w), r.limits[p])
	if here <= 0 {
		return best, false
	}
	own := int64(r.gains.to(v, p))
	for q := range r.parts {
		there := excess(r.parts[q].plus(w), r.limits[q]) - excess(r.parts[q], r.limits[q])
		if uint32(q) == p || here-there <= here*1e-9 { // the tolerance excludes rounding errors
			continue
		}
		m := relief{v, uint32(q), price(own-int64(r.gains.to(v, uint32(q))), here-there)}
		if !ok || m.price < best.price {
			best, ok = m, true
		}
	}
	return best, ok
}

// price returns the loss per unit of removed excess. A gain is better the more excess it removes.
func price(loss int64, freed float64) float64 {
	if loss < 0 {
		return float64(loss) * freed
	}
	return float64(loss) / freed
}

// excess returns the sum of squares of a part's overloads, relative to its limits.
func excess(part, limit weights) float64 {
	sum := 0.0
	for i, w := range part {
		if w > limit[i] {
			e := float64(w)/float64(limit[i]) - 1
			sum += e * e
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
