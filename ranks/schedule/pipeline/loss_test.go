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

// meanLoss returns the mean over all victims and 50 moments of a step.
func meanLoss(t *testing.T, s Settings, c Costs) (mean Loss) {
	t.Helper()
	whole := Simulate(s, c).Seconds
	for victim := range s.Stages {
		for k := range 50 {
			l, err := c.Lose(s, victim, whole*(float64(k)+0.5)/50)
			if err != nil {
				t.Fatal(err)
			}
			// Without a message between victim and shadow, the step can be shorter by its time, 0.1 s.
			if l.Step < whole-0.2 && s.Redundancy < EagerForward {
				t.Errorf("a step with a loss takes %g, without %g", l.Step, whole)
			}
			mean.Pause += l.Pause / 50 / float64(s.Stages)
			mean.Step += l.Step / 50 / float64(s.Stages)
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
		off := meanLoss(t, s, c)
		s.Redundancy = LazyForwardBackward
		lazy := meanLoss(t, s, c)
		s.Redundancy = EagerForward
		eager := meanLoss(t, s, c)
		s.Redundancy = EagerForwardBackward
		both := meanLoss(t, s, c)
		t.Logf("factor %g: off %.1f, lflb %.1f, eflb %.1f, efeb %.1f", factor, off, lazy, eager, both)
		if eager.Pause > 0.7*lazy.Pause || both.Pause >= eager.Pause || lazy.Pause >= off.Pause {
			t.Errorf("factor %g: pauses %g, %g, %g, %g", factor, off.Pause, lazy.Pause, eager.Pause, both.Pause)
		}
	}
}

// A loss before the first pass of a step costs no repeated pass, and one after the last pass of the victim
// all of them.
func TestLossAtEnds(t *testing.T) {
	c := growing(4, 1)
	c.Detection = 5
	s := Settings{4, 6, OneForwardOneBackward, LazyForwardBackward}
	whole := Simulate(s, c).Seconds
	for victim := range 4 {
		if l, err := c.Lose(s, victim, 0); err != nil || l.Pause != 5 || l.Step < whole+5 {
			t.Errorf("victim %d: %+v, %v", victim, l, err)
		}
		if l, err := c.Lose(s, victim, whole); err != nil || math.Abs(l.Pause-(5+6*3)) > 1e-9 || l.Step < whole+5+6*3-1e-9 {
			t.Errorf("victim %d: %+v, %v, step %g", victim, l, err, whole)
		}
	}
}

// All times of a rank sum to that of the step, with any redundancy, also after a loss.
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
