package spot

import "slices"

// oobleck combines pipeline templates of different depths, so that no machine is idle (Oobleck,
// SOSP'23). Lost state is copied from other pipelines. A loss is fatal if a layer has no machine
// left in any pipeline.
type oobleck struct {
	pipes [][]*Machine
}

// layers is the number of layers of a network. They divide a pipeline's machines evenly.
const layers = 48

func (s *oobleck) Lost(c *Cluster, lost []*Machine) {
	for _, pipe := range s.pipes {
		for stage, m := range pipe {
			if slices.Contains(lost, m) {
				pipe[stage] = nil
			}
		}
	}
	if !s.complete() {
		c.FailFatally()
		return
	}
	c.LoseIteration()
	c.Pause(Reconfiguring, c.Reconfigure)
}

// complete reports whether each layer has a machine.
func (s *oobleck) complete() bool {
	for layer := range layers {
		if !slices.ContainsFunc(s.pipes, func(pipe []*Machine) bool {
			return pipe[layer*len(pipe)/layers] != nil
		}) {
			return false
		}
	}
	return true
}

func (s *oobleck) Joined(c *Cluster, _ []*Machine) {
	switch {
	case c.Idle() && len(c.Ready) >= c.MinDepth:
		c.Start()
	case c.Training() && active(c.Ready) < c.Machines():
		c.WakeAtIterationEnd()
	}
}

func (s *oobleck) Due(c *Cluster) {
	if c.Training() {
		c.Pause(Reconfiguring, c.Reconfigure)
		return
	}
	n := min(len(c.Ready), c.Machines())
	count := min(c.Replicas, n/c.MinDepth)
	if s.pipes = nil; count == 0 {
		c.Wait()
		return
	}
	activate(c, n)
	order := slices.DeleteFunc(slices.Clone(c.Ready), func(m *Machine) bool { return !m.Active })
	rate := 0.0
	for k := range count {
		pipe := order[k*n/count : (k+1)*n/count]
		s.pipes = append(s.pipes, slices.Clone(pipe))
		rate += c.Rate(len(pipe), float64(count)) / float64(count)
	}
	c.Train(rate)
}
