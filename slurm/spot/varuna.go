package spot

// varuna chooses depth and number of pipelines again for the machines that are left, and restarts
// from a checkpoint (Varuna, EuroSys'22).
type varuna struct {
	depth, pipes int
}

// worthwhile is the relative gain of throughput for which new machines are worth a restart.
const worthwhile = 0.05

func (s *varuna) Lost(c *Cluster, _ []*Machine) {
	c.Rollback()
	c.Pause(Restarting, c.Restart)
}

func (s *varuna) Joined(c *Cluster, _ []*Machine) {
	depth, pipes := morph(c, len(c.Ready))
	switch {
	case c.Idle() && pipes > 0:
		c.Start()
	case c.Training() && c.Rate(depth, float64(pipes)) > (1+worthwhile)*c.Rate(s.depth, float64(s.pipes)):
		c.WakeAtIterationEnd()
	}
}

func (s *varuna) Due(c *Cluster) {
	if c.Training() {
		c.Save()
		c.Pause(Restarting, c.Restart)
		return
	}
	s.depth, s.pipes = morph(c, len(c.Ready))
	activate(c, s.depth*s.pipes)
	if s.pipes == 0 {
		c.Wait()
		return
	}
	c.Train(c.Rate(s.depth, float64(s.pipes)))
}

// morph returns the fastest division of at most n machines into pipelines of equal depth, and
// zeros if they are too few for one. A cluster never has more machines than requested (Bamboo,
// §3.4).
func morph(c *Cluster, n int) (depth, pipes int) {
	best := 0.0
	n = min(n, c.Machines())
	for d := 1; d <= c.Replicas && d*c.MinDepth <= n; d++ {
		p := min(n/d, c.Depth)
		if rate := c.Rate(p, float64(d)); rate > best {
			best, depth, pipes = rate, p, d
		}
	}
	return depth, pipes
}
