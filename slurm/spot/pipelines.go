package spot

// pipelines counts complete pipelines of fixed depth, for systems whose pipelines do not change
// their depth. The machines of n pipelines are the first active ones; others are standby.
type pipelines struct{ n int }

// possible returns the number of pipelines that the present machines fill.
func possible(c *Cluster) int { return min(c.Replicas, len(c.Ready)/c.Depth) }

// assign makes as many pipelines as possible.
func (p *pipelines) assign(c *Cluster) {
	p.n = possible(c)
	activate(c, p.n*c.Depth)
}

// activate makes n machines active. Active machines remain active if possible.
func activate(c *Cluster, n int) {
	for _, keep := range []bool{true, false} {
		for _, m := range c.Ready {
			if m.Active == keep {
				m.Active = n > 0
				n--
			}
		}
	}
}

// active returns the active ones of some machines.
func active(machines []*Machine) (n int) {
	for _, m := range machines {
		if m.Active {
			n++
		}
	}
	return n
}

// trainOrWait trains with all pipelines, or waits for machines.
func (p *pipelines) trainOrWait(c *Cluster) {
	if p.n == 0 {
		c.Wait()
		return
	}
	c.Train(c.Rate(c.Depth, float64(p.n)))
}
