package pipeline

// Pause returns the seconds from the loss of a stage until the shadow has all results that the victim had,
// without other work (§3.5.2). The loss occurs at a time of a simulated step, from 0 to the time of the step.
// Ranks notice the loss after Costs.Detection seconds and finish the pass that they run. Then the shadow
// repeats the passes that are lost.
//
// With redundancy off, the step begins again, and the pause includes the time of the step until the loss.
func (c Costs) Pause(t *Timeline, victim int, moment float64) float64 {
	if t.Settings.Redundancy == Off {
		return c.Detection + moment
	}
	c = c.prepared()
	done := t.until(moment)
	kept := done[t.Settings.Shadow(victim)].Protected()
	repeated := func(op Op, seconds []float64) float64 {
		return float64(max(done[victim][op]-kept[op], 0)) * at(seconds, victim)
	}
	return c.Detection + repeated(Forward, c.Forward) + repeated(Backward, c.Backward)
}

// until returns the instructions that each stage has completed at a time. An own pass that runs is
// completed.
func (t *Timeline) until(moment float64) []Done {
	done := make([]Done, len(t.Events))
	for stage, events := range t.Events {
		for _, e := range events {
			if e.Begin >= moment && !e.Op.Redundant() || e.End > moment && e.Op.Receives() || e.Op == Reduce {
				break
			}
			if e.Op.Redundant() && e.End > moment {
				continue // it may run in parallel with the instructions after it
			}
			done[stage][e.Op]++
		}
	}
	return done
}
