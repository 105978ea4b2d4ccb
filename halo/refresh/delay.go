package refresh

import "siafu/halo"

// delayed is DistGNN's cd-r (Md et al., SC'21): ghosts are in R groups by their
// ids; in each epoch one group's rows, and gradients, leave, in turn, and are used R
// epochs later. Until then those stand that have come before, and before the first
// zeros: all that is used is from R to 2R-1 epochs old. With R=0 it is always.
func delayed(p Policy, _ halo.HistoryOptions) timetable {
	r := p.Epochs
	if r == 0 {
		return timetable{leaving: func(halo.Slot) int { return 0 }}
	}
	return timetable{
		groups: r, group: func(id uint32) int { return int(id) % r },
		leaving: func(at halo.Slot) int { return (at.Epoch - 1 + r) % r },
		lag:     r, gradsPersist: true,
	}
}
