package world

import "fmt"

// View says which rank carries which parts of the graph. A launcher or the
// program itself has started Ranks+Servers ranks: graph ranks first, each of
// which carries a block of the Parts parts, in their order and as equal in number
// as can be, and servers behind them, which carry none. 1 <= Ranks <= Parts.
//
// A run lives in a world of Parts+Servers members, the parts first. Where each
// graph rank carries one part, members and ranks are the same.
type View struct {
	Parts, Ranks, Servers int
}

// Flat is the view of a world of so many ranks, each with a part.
func Flat(ranks int) View { return View{Parts: ranks, Ranks: ranks} }

// Flat tells whether members and ranks are the same.
func (v View) Flat() bool { return v.Parts == v.Ranks }

// Members is the size of the world that the run lives in.
func (v View) Members() int { return v.Parts + v.Servers }

// Started is the number of ranks, servers included.
func (v View) Started() int { return v.Ranks + v.Servers }

// Block is the members that a rank carries, lo <= member < hi.
func (v View) Block(rank int) (lo, hi int) {
	if rank >= v.Ranks {
		lo = v.Parts + rank - v.Ranks
		return lo, lo + 1
	}
	return shareStart(v.Parts, rank, v.Ranks), shareStart(v.Parts, rank+1, v.Ranks)
}

// Rank is the rank that carries a member.
func (v View) Rank(member int) int {
	if member >= v.Parts {
		return v.Ranks + member - v.Parts
	}
	each, longer := v.Parts/v.Ranks, v.Parts%v.Ranks // blocks with a part more come first
	if at := longer * (each + 1); member >= at {
		return longer + (member-at)/each
	}
	return member / (each + 1)
}

// Name is what a member is called where a user reads of it.
func (v View) Name(member int) string {
	if v.Flat() || member >= v.Parts {
		return fmt.Sprintf("rank %d", v.Rank(member))
	}
	return fmt.Sprintf("part %d of rank %d", member, v.Rank(member))
}
