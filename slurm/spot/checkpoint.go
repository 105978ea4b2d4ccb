package spot

// checkpointing restarts from the last complete checkpoint whenever a machine of a pipeline is lost
// or a machine joins (Bamboo, §3.3, strawman 1: "checkpointing and restarting functionalities
// similar to TorchElastic", which restarts all workers at each change of membership). Checkpoints
// are asynchronous.
type checkpointing struct{ pipelines }

func (s *checkpointing) Lost(c *Cluster, _ []*Machine) { s.restart(c) }

func (s *checkpointing) Joined(c *Cluster, _ []*Machine) {
	switch {
	case c.Idle() && possible(c) > 0:
		c.Start()
	case !c.Idle():
		s.restart(c)
	}
}

// restart returns to the checkpoint.
func (s *checkpointing) restart(c *Cluster) {
	c.Rollback()
	c.Pause(Restarting, c.Restart)
}

func (s *checkpointing) Due(c *Cluster) {
	s.assign(c)
	s.trainOrWait(c)
}
