package simulate

import (
	"slices"
	"time"

	"siafu/ranks/schedule"
	"siafu/ranks/trace"
)

// transfer is one of a run's exchanges of rows.
type transfer struct {
	kind         string
	epoch, layer int
}

// arrival returns the median seconds from the last rank's send to the continuation of a rank
// that waited only for these rows: the time of links and of waking the waiting worker.
func arrival(graph [][]trace.Event, epochs []int) float64 {
	sent := map[transfer]time.Duration{}
	forEachTransfer(graph, epochs, func(x transfer, first bool, e *trace.Event) {
		if first {
			sent[x] = max(sent[x], e.End())
		}
	})
	var all []float64
	forEachTransfer(graph, epochs, func(x transfer, _ bool, e *trace.Event) {
		if onlyWaits(e) && e.End() > sent[x] {
			all = append(all, (e.End() - sent[x]).Seconds())
		}
	})
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// forEachTransfer visits the events of exchanges, and reports which is a rank's first: its
// send.
func forEachTransfer(graph [][]trace.Event, epochs []int, visit func(x transfer, first bool, e *trace.Event)) {
	for _, list := range graph {
		seen := map[transfer]bool{}
		for i := range list {
			e := &list[i]
			moves := e.Task == schedule.Send.Kind() || e.Task == schedule.SendBackward.Kind()
			if !moves || !slices.Contains(epochs, e.Epoch) {
				continue
			}
			x := transfer{e.Task, e.Epoch, e.Layer}
			visit(x, !seen[x] && !onlyWaits(e), e)
			seen[x] = seen[x] || !onlyWaits(e)
		}
	}
}
