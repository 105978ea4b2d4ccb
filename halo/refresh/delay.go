package refresh

import "siafu/halo"

// delayed is DistGNN's cd-r (Md et al., SC'21): ghosts are in R groups by their ids. Each
// epoch sends one group's rows and gradients, in rotation; they are used R epochs later. Until
// then the previous ones are used, at first zeros: all used rows are R to 2R-1 epochs old.
// With R=0 it equals always.
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
