package spot

import "slices"

// redundantParts is siafu's training on a whole graph, with a copy of each part's state on another
// machine. After a loss, other machines rebuild the part from the copy and repeat the epoch in
// progress; there is no second forward pass. A loss is fatal if both machines of a part are lost
// together. restartParts instead writes a checkpoint after each epoch, and restarts from it.
//
// The graph has Parts per requested machine. An epoch takes as long as that of the machine with
// most parts.
type (
	redundantParts struct{ order []*Machine } // the copy of a machine's parts is on its successor
	restartParts   struct{ n int }            // machines of the current division
)

// partsRate returns the rate of n machines.
func partsRate(c *Cluster, n int) float64 {
	if n == 0 {
		return 0
	}
	most := (c.Parts*c.Machines() + n - 1) / n
	return c.Rate(c.Depth, float64(c.Replicas)) * float64(c.Parts) / float64(max(most, c.Parts))
}

func (s *redundantParts) Lost(c *Cluster, lost []*Machine) {
	if s.unsafe(lost) {
		c.FailFatally()
		return
	}
	s.order = slices.DeleteFunc(s.order, func(m *Machine) bool { return slices.Contains(lost, m) })
	c.LoseIteration()
	c.Pause(Recovering, c.Inputs.Pause)
}

// unsafe reports whether a machine is lost together with its copy.
func (s *redundantParts) unsafe(lost []*Machine) bool {
	for k, m := range s.order {
		if slices.Contains(lost, m) && slices.Contains(lost, s.order[(k+1)%len(s.order)]) {
			return true
		}
	}
	return len(lost) >= len(s.order)
}

func (s *redundantParts) Joined(c *Cluster, _ []*Machine) {
	switch {
	case c.Idle():
		c.Start()
	case c.Training() && partsRate(c, len(c.Ready)) > partsRate(c, len(s.order)):
		c.WakeAtIterationEnd()
	}
}

func (s *redundantParts) Due(c *Cluster) {
	if c.Training() {
		c.Pause(Reconfiguring, c.Inputs.Pause)
		return
	}
	if len(c.Ready) == 0 {
		c.Wait()
		return
	}
	s.order = spread(c.Ready)
	activate(c, len(c.Ready))
	c.Train(partsRate(c, len(c.Ready)) / (1 + c.Copies))
}

func (s *restartParts) Lost(c *Cluster, _ []*Machine) {
	c.Rollback()
	c.Pause(Restarting, c.Restart)
}

func (s *restartParts) Joined(c *Cluster, _ []*Machine) {
	switch {
	case c.Idle():
		c.Start()
	case c.Training() && partsRate(c, len(c.Ready)) > (1+worthwhile)*partsRate(c, s.n):
		c.WakeAtIterationEnd()
	}
}

func (s *restartParts) Due(c *Cluster) {
	if c.Training() {
		c.Save()
		c.Pause(Restarting, c.Restart)
		return
	}
	if s.n = len(c.Ready); s.n == 0 {
		c.Wait()
		return
	}
	activate(c, s.n)
	rate := partsRate(c, s.n)
	c.CheckpointEvery, c.CheckpointTime = c.Batch/rate, 0
	c.Train(rate)
}
