package spot

// dropping suspends a pipeline that loses a machine, and drops its samples (Bamboo, §3.3, strawman
// 2). The other pipelines go on at their rate. Pipelines are rebuilt when new machines fill one.
type dropping struct {
	pipes []bool // whether each pipeline is complete
	of    map[*Machine]int
}

func (s *dropping) Lost(c *Cluster, lost []*Machine) {
	for _, m := range lost {
		if m.Active {
			s.pipes[s.of[m]] = false
		}
	}
	switch {
	case s.alive() == 0:
		c.FailFatally()
	case c.Training():
		s.train(c)
	}
}

func (s *dropping) Joined(c *Cluster, _ []*Machine) {
	switch {
	case c.Idle() && possible(c) > 0:
		c.Start()
	case c.Training() && possible(c) > s.alive():
		c.WakeAtIterationEnd()
	}
}

func (s *dropping) Due(c *Cluster) {
	if c.Training() {
		if possible(c) > s.alive() {
			c.Pause(Reconfiguring, c.Reconfigure)
		}
		return
	}
	s.of, s.pipes = map[*Machine]int{}, nil
	activate(c, 0)
	for k := range possible(c) {
		s.pipes = append(s.pipes, true)
		for _, m := range c.Ready[k*c.Depth : (k+1)*c.Depth] {
			s.of[m], m.Active = k, true
		}
	}
	if len(s.pipes) == 0 {
		c.Wait()
		return
	}
	s.train(c)
}

// train trains the complete pipelines. Each has the microbatches that it had before a loss.
func (s *dropping) train(c *Cluster) {
	all := c.Rate(c.Depth, float64(len(s.pipes)))
	kept := float64(s.alive()) / float64(len(s.pipes))
	c.Train(all * kept)
	c.Drop(all * (1 - kept))
	if possible(c) > s.alive() {
		c.WakeAtIterationEnd()
	}
}

func (s *dropping) alive() (n int) {
	for _, complete := range s.pipes {
		if complete {
			n++
		}
	}
	return n
}
