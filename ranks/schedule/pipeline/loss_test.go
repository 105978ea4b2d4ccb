package pipeline

import (
	"math"
	"testing"
)

// growing returns costs of stages that grow by a factor.
func growing(stages int, factor float64) (c Costs) {
	for s := range stages {
		f := math.Pow(factor, float64(s))
		c.Forward, c.Backward, c.Transfer = append(c.Forward, f), append(c.Backward, 2*f), append(c.Transfer, 0.1)
	}
	return c
}

// meanPause returns the mean over all victims and 50 moments of a step.
func meanPause(s Settings, c Costs) (mean float64) {
	step := Simulate(s, c)
	for victim := range s.Stages {
		for k := range 50 {
			mean += c.Pause(&step, victim, step.Seconds*(float64(k)+0.5)/50) / 50 / float64(s.Stages)
		}
	}
	return mean
}

// "lazy FRC [read: eager FRC] reduces pause time by ~35% despite the slightly higher per-iteration overhead it
// introduces" (§3.6.4, figure 3.13). A lost microbatch costs a forward and a backward pass without, and a
// backward pass of twice the time with it: a third less, if all forward passes were in time.
func TestFigure313(t *testing.T) {
	for _, factor := range []float64{1, 1.03, 1.3} {
		c := growing(8, factor)
		s := Settings{Stages: 8, Microbatches: 22}
		off := meanPause(s, c)
		s.Redundancy = LazyForwardBackward
		lazy := meanPause(s, c)
		s.Redundancy = EagerForward
		eager := meanPause(s, c)
		s.Redundancy = EagerForwardBackward
		both := meanPause(s, c)
		t.Logf("factor %g: off %.1f, lflb %.1f, eflb %.1f, efeb %.1f", factor, off, lazy, eager, both)
		if eager > 0.7*lazy || both >= eager || lazy >= off {
			t.Errorf("factor %g: pauses %g, %g, %g, %g", factor, off, lazy, eager, both)
		}
	}
}

// A loss before the first pass of a step costs no repeated pass, and one after the last pass of the victim
// all of them.
func TestLossAtEnds(t *testing.T) {
	c := growing(4, 1)
	c.Detection = 5
	s := Settings{4, 6, OneForwardOneBackward, LazyForwardBackward}
	step := Simulate(s, c)
	for victim := range 4 {
		if pause := c.Pause(&step, victim, 0); pause != 5 {
			t.Errorf("victim %d: %g", victim, pause)
		}
		if pause := c.Pause(&step, victim, step.Seconds); math.Abs(pause-(5+6*3)) > 1e-9 {
			t.Errorf("victim %d: %g", victim, pause)
		}
	}
}

// All times of a rank sum to that of the step, with any redundancy.
func TestUsage(t *testing.T) {
	all(t, func(t *testing.T, s Settings) {
		c := growing(s.Stages, 1.2)
		c.Overlap, c.Preparation, c.Spill, c.Reduce = 0.4, 0.07, []float64{0.1, 0.1}, []float64{1, 2}
		got := Simulate(s, c)
		for r, u := range got.Ranks {
			if math.Abs(u.Busy+u.Extra+u.Bubble()-got.Seconds) > 1e-9*got.Seconds || u.Idle < -1e-9 {
				t.Errorf("rank %d: %+v of %g", r, u, got.Seconds)
			}
		}
	})
}
