package pipeline

// Loss is the effect of a lost rank on a step, in seconds.
type Loss struct {
	Pause float64 // until the shadow has all results that the victim had, without other work
	Step  float64 // time of the step with the loss
}

// Lose simulates the loss of a stage at a time of a step, from 0 to the time of the step (§3.5.2). Ranks notice
// it after Costs.Detection seconds and finish the pass that they run. Then the shadow repeats the passes
// that are lost, and all ranks continue with the lists of Settings.Failover. Messages in transit are sent
// again. The pause of a loss is at least Detection.
//
// With redundancy off, the step begins again on the same number of ranks, of which the shadow runs two
// stages. Its pause is the time of the step until the loss.
func (c Costs) Lose(s Settings, victim int, moment float64) (l Loss, err error) {
	t := Simulate(s, c)
	l.Pause = c.Pause(&t, victim, moment)
	if s.Redundancy == Off {
		again, err := c.Execute(s.Failover([]int{victim}, nil))
		l.Step = l.Pause + again.Seconds
		return l, err
	}
	done, begin := t.until(moment)
	done[victim] = done[s.Shadow(victim)].Protected()
	for stage := range done {
		begin[stage] = max(begin[stage], moment) + c.Detection
	}
	s.Acknowledge(done)
	rest, err := c.prepared().execute(s.Failover([]int{victim}, done), begin)
	l.Step = rest.Seconds
	return l, err
}

// Pause returns Loss.Pause for a loss at a time of a simulated step.
func (c Costs) Pause(t *Timeline, victim int, moment float64) float64 {
	if t.Settings.Redundancy == Off {
		return c.Detection + moment
	}
	c = c.prepared()
	done, _ := t.until(moment)
	kept := done[t.Settings.Shadow(victim)].Protected()
	repeated := func(op Op, seconds []float64) float64 {
		return float64(max(done[victim][op]-kept[op], 0)) * at(seconds, victim)
	}
	return c.Detection + repeated(Forward, c.Forward) + repeated(Backward, c.Backward)
}

// until returns the instructions that each stage has completed at a time. An own pass that runs is
// completed, and begin has the time of its end.
func (t *Timeline) until(moment float64) (done []Done, begin []float64) {
	done, begin = make([]Done, len(t.Events)), make([]float64, len(t.Events))
	for stage, events := range t.Events {
		for _, e := range events {
			if e.Begin >= moment && !e.Op.Redundant() || e.End > moment && e.Op.Receives() || e.Op == Reduce {
				break
			}
			if e.Op.Redundant() && e.End > moment {
				continue // it may run in parallel with the instructions after it
			}
			done[stage][e.Op]++
			begin[stage] = max(begin[stage], e.End)
		}
	}
	return done, begin
}
