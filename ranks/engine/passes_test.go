package engine

import (
	"fmt"
	"testing"

	"siafu/ranks/schedule"
)

// No interval gathers rows or gradients before all intervals and ghosts have computed theirs,
// however long one task takes: while a task is withheld, no gather of its rows becomes ready. Rows of
// ghosts are received, computed, or both.
func TestGathersAwaitRows(t *testing.T) {
	gathers := LayerOutline{Gathers: true, GathersBackward: true}
	for _, ghosts := range [][]int{nil, {3}, {4, 3}, {5, 4, 3}} {
		for _, mixed := range []int{0, 2} {
			for k := range 4 {
				o := Outline{
					Layers: []LayerOutline{gathers, gathers, gathers}, Intervals: 3, Loss: true, Barrier: k%2 > 0, Late: k/2 > 0,
					GhostOutline: GhostOutline{Ghosts: true, Returns: true, Pieces: 2, GhostTasks: ghosts},
				}
				if len(ghosts) > 0 {
					o.Mixed = mixed
				}
				t.Run(fmt.Sprintf("%d computed, %d mixed, barrier=%t, late=%t", len(ghosts), o.Mixed,
					o.Barrier, o.Late), func(t *testing.T) {
					g := o.Epoch().Graph
					for _, withheld := range g.Tasks() {
						for _, ready := range readyWithout(g, withheld) {
							if reads(ready, withheld) {
								t.Fatalf("%v (stage %d) does not wait for %v (stage %d)", ready, ready.Stage, withheld, withheld.Stage)
							}
						}
					}
				})
			}
		}
	}
}

// readyWithout returns the tasks that become ready while one task has not ended.
func readyWithout(g *schedule.Graph, withheld schedule.Task) (list []schedule.Task) {
	w := schedule.NewWalk(g)
	w.Start(1)
	for {
		if event, ok := w.Awaited(); ok {
			w.Done(event)
			continue
		}
		next, ok := w.Next()
		if !ok {
			return list
		}
		if list = append(list, next); next.Ref != withheld.Ref {
			w.Done(next)
		}
	}
}

// reads reports whether a gather reads what a task of the same layer computes.
func reads(gather, task schedule.Task) bool {
	if gather.Layer != task.Layer {
		return false
	}
	switch gather.Stage {
	case schedule.GatherOwn:
		return task.Stage == schedule.Emit
	case schedule.GatherGhosts:
		return task.Stage == schedule.EmitGhosts || task.Stage == schedule.PlaceGhosts || task.Stage == schedule.Receive
	case schedule.GatherBackward, schedule.GhostGrads:
		return task.Stage == schedule.ApplyBackward && task.Interval != schedule.Whole
	}
	return false
}
