package membership

import (
	"slices"

	"siafu/ranks/world"
)

// neighbours returns the ranks of a rank's host.
func (m *Machine) neighbours(rank int) (list []int) {
	for r := range m.reports {
		if m.hosts != nil && m.hosts[r] == m.hosts[rank] {
			list = append(list, r)
		}
	}
	return list
}

// next returns the view after the current one: the proposed one, in which the members of other ranks
// than the given carriers move to the carrier of their View.Shadow, to carriers without members, or else
// to those with the fewest. The view has the given number of new ranks.
func (m *Machine) next(proposed *world.View, carriers []int, joined int) world.View {
	next := m.view.Restart()
	if proposed != nil && proposed.Replaces(m.view) {
		next.Carrier = slices.Clone(proposed.Carrier)
	}
	next.Spares += joined
	fewest := func() int {
		best := carriers[0]
		for _, r := range carriers {
			if len(next.Carried(r)) < len(next.Carried(best)) {
				best = r
			}
		}
		return best
	}
	for rank := range m.reports {
		if slices.Contains(carriers, rank) {
			continue
		}
		idle := fewest()
		all := len(next.Carried(idle)) == 0
		for _, member := range next.Carried(rank) {
			if shadow, ok := next.Shadow(member); ok && slices.Contains(carriers, m.view.Rank(shadow)) {
				next.Carrier[member] = m.view.Rank(shadow)
				continue
			}
			if next.Carrier[member] = idle; !all {
				idle = fewest()
			}
		}
	}
	if last := next.Started() - 1; joined > 0 && len(next.Carried(last)) == 0 {
		deal(next, last)
	}
	return next
}

// deal moves members to a rank that carries none, if fewer ranks carry members than at the start of
// the run: those of a rank of the start that carries none now, and then others, until the numbers of
// members differ by at most one.
func deal(v world.View, to int) {
	first := world.View{Parts: v.Parts, Ranks: v.Ranks, Servers: v.Servers, Bridges: v.Bridges}
	most, carriers := 0, 0
	for r := range v.Started() {
		if n := len(v.Carried(r)); n > 0 {
			carriers++
			if n > len(v.Carried(most)) {
				most = r
			}
		}
	}
	if carriers >= first.Started() {
		return
	}
	for _, member := range v.Carried(most) {
		if home := first.Rank(member); len(v.Carried(home)) == 0 {
			for _, member := range first.Carried(home) {
				v.Carrier[member] = to
			}
			break
		}
	}
	for {
		for r := range v.Started() {
			if len(v.Carried(r)) > len(v.Carried(most)) {
				most = r
			}
		}
		list := v.Carried(most)
		if len(list) < len(v.Carried(to))+2 {
			return
		}
		v.Carrier[list[len(list)-1]] = to
	}
}
