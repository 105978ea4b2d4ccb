package spot

import "slices"

// recycle sends the microbatches of a lost machine to the machines of the same stage in other
// pipelines, which run them in their idle time (ReCycle, SOSP'24). A loss is fatal if a stage has
// no machine left. New machines take the free places.
type recycle struct {
	stages [][]*Machine // by stage, the machine of each pipeline; nil: lost
}

func (s *recycle) Lost(c *Cluster, lost []*Machine) {
	for _, stage := range s.stages {
		for k, m := range stage {
			if slices.Contains(lost, m) {
				stage[k] = nil
			}
		}
		if count(stage) == 0 {
			c.FailFatally()
			return
		}
	}
	c.LoseIteration()
	c.Pause(Recovering, c.Inputs.Pause)
}

func (s *recycle) Joined(c *Cluster, _ []*Machine) {
	switch {
	case c.Idle() && len(c.Ready) >= c.Depth:
		c.Start()
	case c.Training() && active(c.Ready) < c.Machines():
		c.WakeAtIterationEnd()
	}
}

func (s *recycle) Due(c *Cluster) {
	switch c.phase {
	case Useful:
		c.Pause(Reconfiguring, c.Move)
		return
	case Waiting, Restarting:
		if s.stages = nil; len(c.Ready) < c.Depth {
			c.Wait()
			return
		}
		for range c.Depth {
			s.stages = append(s.stages, make([]*Machine, c.Replicas))
		}
		for _, m := range c.Ready {
			m.Active = false
		}
	}
	if c.phase != Recovering {
		s.fill(c)
	}
	c.Train(s.rate(c))
	if len(c.Ready) > active(c.Ready) && active(c.Ready) < c.Machines() {
		c.WakeAtIterationEnd()
	}
}

// fill gives free places to machines on standby, first in the stages with fewest machines.
func (s *recycle) fill(c *Cluster) {
	for _, m := range c.Ready {
		if m.Active {
			continue
		}
		least := slices.MinFunc(s.stages, func(a, b []*Machine) int { return count(a) - count(b) })
		k := slices.Index(least, nil)
		if k < 0 {
			return
		}
		least[k], m.Active = m, true
	}
}

// rate returns the rate of the slowest stage. A stage with n of D machines runs m·D/n microbatches
// per machine, and the idle time of p-1 microbatches takes a part of the additional ones.
func (s *recycle) rate(c *Cluster) float64 {
	slots := float64(c.Microbatches + c.Depth - 1)
	most := slots
	for _, stage := range s.stages {
		most = max(most, float64(c.Microbatches*c.Replicas)/float64(count(stage)))
	}
	return c.Rate(c.Depth, float64(c.Replicas)) * slots / most
}

func count(stage []*Machine) (n int) {
	for _, m := range stage {
		if m != nil {
			n++
		}
	}
	return n
}
