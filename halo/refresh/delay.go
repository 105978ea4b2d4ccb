package refresh

import (
	"fmt"

	"siafu/halo"
)

var delayKind = kind{
	entry: entry{Name: "delay", Form: "delay:R", Help: "one of R groups (at most 64) is sent in each epoch and used R epochs later: " +
		"R to 2R-1 epochs old; the group is the vertex id modulo R, with pre-aggregation that of a sum's " +
		"destination (DistGNN's cd-R, SC'21)"},
	timetable: delayed, needsStoredRows: true,
	share:  func(p Policy, _ int) (float64, bool) { return 1 / float64(max(p.Epochs, 1)), p.Epochs <= 1 },
	copies: func(p Policy) int64 { return 2 * int64(min(p.Epochs, 1)) },
	least:  1, params: []parameter{epochs(fmt.Sprint("R a number of epochs from 0 to ", mostGroups), 0, mostGroups)},
}

// delayed returns the timetable of DistGNN's cd-r (Md et al., SC'21). Ghosts form R groups by
// their ids. Each epoch sends one group's rows and gradients, in rotation; they are used R
// epochs later. Until then the previous rows are used, initially zeros. All used rows are R to
// 2R-1 epochs old. With R=0 it equals always.
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
