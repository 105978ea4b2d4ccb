package spot

// migration moves the state of a machine to one on standby in the notice before its loss (Bamboo,
// §3.3, strawman 3). Without enough machines on standby, or if Move takes longer than Notice, it
// restarts: from a checkpoint that it writes in the notice, or from the last complete one if
// CheckpointTime is longer than Notice.
type migration struct{ pipelines }

func (s *migration) Lost(c *Cluster, _ []*Machine) {
	switch {
	case possible(c) >= s.n && c.Move <= c.Notice:
		c.Pause(Recovering, c.Move)
	case c.CheckpointTime <= c.Notice:
		c.Save()
		c.Pause(Restarting, c.Restart)
	default:
		c.FailFatally()
	}
}

func (s *migration) Joined(c *Cluster, _ []*Machine) {
	switch {
	case c.Idle() && possible(c) > 0:
		c.Start()
	case c.Training() && possible(c) > s.n:
		c.WakeAtIterationEnd()
	}
}

func (s *migration) Due(c *Cluster) {
	if c.Training() {
		c.Pause(Reconfiguring, c.Reconfigure)
		return
	}
	s.assign(c)
	s.trainOrWait(c)
}
