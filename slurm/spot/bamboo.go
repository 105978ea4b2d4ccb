package spot

import "slices"

// bamboo is redundant computation on neighbours (NSDI'23, §3.5 and §3.7). Each machine also holds
// the state of its successor, with eager forward and lazy backward redundant computation. If a
// machine is lost, its predecessor runs both stages. A loss is fatal if the predecessor is lost
// too, or already runs two stages: then it has no copy of the lost state. Pipelines are rebalanced
// at the end of an iteration.
type bamboo struct {
	pipes [][]*Machine // the machine of each stage; neighbours may be the same one
}

func (b *bamboo) Lost(c *Cluster, lost []*Machine) {
	switch {
	case !b.recover(lost):
		b.pipes = nil
		c.FailFatally()
	case c.phase == Reconfiguring:
		c.Pause(Reconfiguring, c.Reconfigure)
		c.Reconfigurations-- // the same one again
	default:
		c.Pause(Recovering, c.Inputs.Pause)
	}
}

// recover gives the stages of lost machines to their predecessors. It reports false if the state
// of a stage is lost.
func (b *bamboo) recover(lost []*Machine) bool {
	for _, pipe := range b.pipes {
		for stage, m := range pipe {
			shadow := pipe[(stage+len(pipe)-1)%len(pipe)]
			if slices.Contains(lost, m) && (m.Stages > 1 || shadow.Stages > 1 || slices.Contains(lost, shadow)) {
				return false
			}
		}
	}
	for _, pipe := range b.pipes {
		for stage, m := range pipe {
			if slices.Contains(lost, m) {
				pipe[stage] = pipe[(stage+len(pipe)-1)%len(pipe)]
				pipe[stage].Stages = 2
			}
		}
	}
	return true
}

func (b *bamboo) Joined(c *Cluster, _ []*Machine) {
	switch {
	case c.Idle() && possible(c) > 0:
		c.Start()
	case c.Training() && b.unbalanced(c):
		c.WakeAtIterationEnd()
	}
}

func (b *bamboo) Due(c *Cluster) {
	switch c.phase {
	case Useful:
		if b.unbalanced(c) {
			c.Pause(Reconfiguring, c.Reconfigure)
		}
	case Recovering:
		b.train(c)
	default:
		if b.assign(c); len(b.pipes) == 0 {
			c.Wait()
			return
		}
		b.train(c)
	}
}

// train trains with redundant computation, more slowly if a machine runs two stages.
func (b *bamboo) train(c *Cluster) {
	rate := c.Rate(c.Depth, float64(len(b.pipes))) / (1 + c.Redundancy)
	if b.merged(c) > 0 {
		rate /= c.Merged
	}
	if c.Train(rate); b.unbalanced(c) {
		c.WakeAtIterationEnd()
	}
}

// merged returns the number of machines that run two stages.
func (b *bamboo) merged(c *Cluster) (n int) {
	for _, m := range c.Ready {
		if m.Active && m.Stages > 1 {
			n++
		}
	}
	return n
}

// unbalanced reports whether a reconfiguration is due (§3.7): machines on standby suffice to
// replace all lost ones or to add a pipeline, or the next loss is fatal with a probability above
// Risk. A machine with two stages and its successor must not be lost.
func (b *bamboo) unbalanced(c *Cluster) bool {
	merged, active := b.merged(c), active(c.Ready)
	standby := len(c.Ready) - active
	return merged > 0 && (standby >= merged || float64(2*merged) > c.Risk*float64(active)) || possible(c) > len(b.pipes)
}

// assign makes pipelines whose consecutive machines are in different zones, if possible.
func (b *bamboo) assign(c *Cluster) {
	b.pipes = nil
	for _, m := range c.Ready {
		m.Active, m.Stages = false, 0
	}
	order := spread(c.Ready)
	for range possible(c) {
		pipe := slices.Clone(order[:c.Depth])
		order = order[c.Depth:]
		for _, m := range pipe {
			m.Active, m.Stages = true, 1
		}
		b.pipes = append(b.pipes, pipe)
	}
}

// spread orders machines such that neighbours are in different zones: the next machine is from the
// zone with most remaining machines that is not the last one's.
func spread(machines []*Machine) []*Machine {
	byZone, zones := map[int][]*Machine{}, []int(nil)
	for _, m := range machines {
		if byZone[m.Zone] == nil {
			zones = append(zones, m.Zone)
		}
		byZone[m.Zone] = append(byZone[m.Zone], m)
	}
	slices.Sort(zones)
	order, last := make([]*Machine, 0, len(machines)), -2
	for len(order) < len(machines) {
		best := last
		for _, z := range zones {
			if z != last && len(byZone[z]) > 0 && (best == last || len(byZone[z]) > len(byZone[best])) {
				best = z
			}
		}
		order = append(order, byZone[best][0])
		byZone[best], last = byZone[best][1:], best
	}
	return order
}
