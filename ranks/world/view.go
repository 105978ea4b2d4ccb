package world

import (
	"fmt"
	"slices"
)

// View assigns the parts of the graph to ranks. A launcher or the program itself has started
// Ranks+Servers+Bridges+Spares ranks. At first, the graph ranks come first and carry the Parts parts.
// Servers and bridges follow and carry no parts, and then spare ranks, which carry nothing.
//
// The world of a run has Parts+Servers+Bridges members, in that order. Members keep their numbers
// when they move to other ranks. If each graph rank r carries only part r, members and ranks are
// the same.
//
//	1 <= Ranks <= Parts
//	Carrier   is nil, or of length Members() with 0 <= Carrier[member] < Started()
//
// Move, WithoutRank and Restart return a view with a Carrier and the next Number. In such a view a
// rank may carry no member, and any rank may carry any. Views are values: a Carrier is never modified.
type View struct {
	Parts, Ranks, Servers int
	Bridges               int // ranks that pass tensor work to functions
	Spares                int // ranks that wait to replace lost ones
	Stages                int // of a pipeline: parts d*Stages to (d+1)*Stages-1 are pipeline d; 0: no pipelines

	Number  int   // number of earlier views
	Carrier []int // the rank of each member; nil: parts are consecutive blocks of nearly equal size
}

// Flat returns the view of a world in which each of the given ranks has one part.
func Flat(ranks int) View { return View{Parts: ranks, Ranks: ranks} }

// Flat reports whether members and ranks are the same.
func (v View) Flat() bool { return v.Parts == v.Ranks && v.Carrier == nil && v.Spares == 0 }

// Members returns the size of the world of the run.
func (v View) Members() int { return v.CoreMembers() + v.Bridges }

// CoreMembers returns the number of members without bridges.
func (v View) CoreMembers() int { return v.Parts + v.Servers }

// Started returns the number of ranks, including servers, bridges and spares.
func (v View) Started() int { return v.Ranks + v.Servers + v.Bridges + v.Spares }

// Bridge returns the member that is the bridge of a part.
func (v View) Bridge(part int) int { return v.CoreMembers() + part%v.Bridges }

// Bridged returns the parts whose tasks a bridge runs, ascending.
func (v View) Bridged(bridge int) (parts []int) {
	for part := range v.Parts {
		if v.Bridge(part) == bridge {
			parts = append(parts, part)
		}
	}
	return parts
}

// Carried returns the members that a rank carries, ascending.
func (v View) Carried(rank int) []int {
	var list []int
	for m := range v.Members() {
		if v.Rank(m) == rank {
			list = append(list, m)
		}
	}
	return list
}

// Rank returns the rank that carries a member.
func (v View) Rank(member int) int {
	if v.Carrier != nil {
		return v.Carrier[member]
	}
	if member >= v.Parts {
		return v.Ranks + member - v.Parts
	}
	each, longer := v.Parts/v.Ranks, v.Parts%v.Ranks // the first longer blocks have each+1 parts
	if at := longer * (each + 1); member >= at {
		return longer + (member-at)/each
	}
	return member / (each + 1)
}

// Name returns the name of a member in messages to users.
func (v View) Name(member int) string {
	if v.Flat() || member >= v.Parts && v.Carrier == nil {
		return fmt.Sprintf("rank %d", v.Rank(member))
	}
	kind, k := "part", member
	if member >= v.CoreMembers() {
		kind, k = "bridge", member-v.CoreMembers()
	} else if member >= v.Parts {
		kind, k = "server", member-v.Parts
	}
	return fmt.Sprintf("%s %d of rank %d", kind, k, v.Rank(member))
}

// Move returns the next view, in which another graph rank carries a part.
func (v View) Move(part, rank int) View {
	next := v.Restart()
	next.Carrier[part] = rank
	return next
}

// WithoutRank returns the next view, in which a graph rank carries no part. Each of its parts moves to the
// rank of its Shadow, else to the first graph rank with the fewest parts so far. If there is no other graph
// rank, it returns Restart.
func (v View) WithoutRank(rank int) View {
	next := v.Restart()
	if v.Ranks == 1 {
		return next
	}
	for _, part := range v.Carried(rank) {
		if part >= v.Parts {
			continue
		}
		if shadow, ok := v.Shadow(part); ok && v.Rank(shadow) != rank {
			next.Carrier[part] = v.Rank(shadow)
			continue
		}
		fewest := -1
		for r := range v.Ranks {
			if r != rank && (fewest < 0 || len(next.Carried(r)) < len(next.Carried(fewest))) {
				fewest = r
			}
		}
		next.Carrier[part] = fewest
	}
	return next
}

// Shadow returns the part that protects a part: the stage before it in its pipeline, or the last one for
// stage 0. ok is false without pipelines of several stages, and for members that are not parts.
func (v View) Shadow(part int) (shadow int, ok bool) {
	if v.Stages < 2 || part >= v.Parts {
		return 0, false
	}
	first := part / v.Stages * v.Stages
	return first + (part-first+v.Stages-1)%v.Stages, true
}

// Restart returns the next view, in which every part restarts on its rank.
func (v View) Restart() View {
	carrier := make([]int, v.Members())
	for m := range carrier {
		carrier[m] = v.Rank(m)
	}
	v.Number, v.Carrier = v.Number+1, carrier
	return v
}

// Replaces reports whether this view may follow another one.
func (v View) Replaces(before View) bool {
	return v.Parts == before.Parts && v.Ranks == before.Ranks && v.Servers == before.Servers &&
		v.Bridges == before.Bridges && v.Spares == before.Spares &&
		v.Number == before.Number+1 && len(v.Carrier) == v.Members() && slices.Min(v.Carrier) >= 0 && slices.Max(v.Carrier) < v.Started()
}
