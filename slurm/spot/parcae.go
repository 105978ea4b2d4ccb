package spot

import "math"

// parcae changes the number of pipelines before predicted losses, such that the expected work of
// the next interval is largest: its liveput (Parcae, NSDI'24). Machines on standby take over the
// stages of lost ones. The parameters are also in the memory of servers, so that at most an
// iteration is lost. The prediction is an exponential mean of past losses per interval.
type parcae struct {
	pipelines
	expected float64 // losses per interval
	losses   float64 // in the current interval
	next     float64 // end of the current interval in seconds
}

// Parcae plans for intervals of a minute. The time of a change is divided among the next intervals.
// Smoothing is the weight of the last interval in the prediction.
const (
	parcaeInterval  = 60
	parcaeAhead     = 12
	parcaeSmoothing = 0.1
)

func (s *parcae) Lost(c *Cluster, lost []*Machine) {
	s.losses += float64(len(lost))
	c.LoseIteration()
	if possible(c) >= s.n {
		c.Pause(Recovering, c.Move)
		return
	}
	c.Pause(Reconfiguring, c.Reconfigure)
}

func (s *parcae) Joined(c *Cluster, _ []*Machine) {
	if c.Idle() && possible(c) > 0 {
		s.n = s.plan(c)
		c.Start()
	}
}

func (s *parcae) Due(c *Cluster) {
	if c.Training() {
		s.predict(c)
		if n := s.plan(c); n != s.n && c.Now >= s.next {
			s.n = n
			c.Pause(Reconfiguring, c.Move)
			return
		}
	}
	if s.n = min(s.n, possible(c)); s.n == 0 {
		if s.n = s.plan(c); s.n == 0 {
			c.Wait()
			return
		}
	}
	activate(c, s.n*c.Depth)
	s.trainOrWait(c)
	if s.next <= c.Now {
		s.next = c.Now + parcaeInterval
	}
	c.WakeAt(s.next)
}

// predict updates the expected losses at the end of an interval.
func (s *parcae) predict(c *Cluster) {
	if c.Now >= s.next {
		s.expected += parcaeSmoothing * (s.losses - s.expected)
		s.losses = 0
	}
}

// plan returns the number of pipelines with the largest liveput for the next interval. More
// pipelines are faster. Fewer leave more machines on standby, for which a loss is a short move.
func (s *parcae) plan(c *Cluster) int {
	best, choice := -1.0, 0
	for n := 1; n <= possible(c); n++ {
		standby := float64(len(c.Ready) - n*c.Depth)
		hit := 1 - math.Exp(-s.expected*float64(n*c.Depth)/float64(len(c.Ready)))
		beyond := hit * math.Exp(-standby/max(s.expected, 1e-9))
		pause := hit*c.Move + beyond*max(c.Reconfigure-c.Move, 0)
		if n != s.n {
			pause += c.Move / parcaeAhead
		}
		// Fewer pipelines after a loss beyond the standby machines.
		after := (1-beyond)*c.Rate(c.Depth, float64(n)) + beyond*c.Rate(c.Depth, float64(n-1))
		if live := after * max(1-pause/parcaeInterval, 0); live > best {
			best, choice = live, n
		}
	}
	return choice
}
