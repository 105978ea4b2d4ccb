package spot

// Run is the result of one simulated training, or the mean of several.
type Run struct {
	System           string             `json:"system"`
	Hours            float64            `json:"hours"`
	Samples          float64            `json:"samples"`
	Dropped          float64            `json:"dropped_samples"`
	Throughput       float64            `json:"samples_per_second"`
	DollarsPerHour   float64            `json:"dollars_per_hour"`
	Value            float64            `json:"value"` // throughput per dollar per hour (Bamboo, §3.6.1)
	Machines         float64            `json:"mean_machines"`
	Lost             float64            `json:"lost_machines"`
	Interval         float64            `json:"hours_between_losses"` // of two machines
	Lifetime         float64            `json:"hours_of_a_machine"`
	Fatal            float64            `json:"fatal_failures"`
	Restarts         float64            `json:"restarts"`
	Reconfigurations float64            `json:"reconfigurations"`
	Fractions        map[string]float64 `json:"fractions_of_time"` // by PhaseNames; their sum is 1
}

// run returns the results of a training that saw the first events of a trace.
func (c *Cluster) run(t *Trace, events int) Run {
	r := Run{
		Hours: c.Now / 3600, Samples: c.samples, Dropped: c.dropped, Machines: ratio(c.machineSeconds, c.Now),
		Throughput: ratio(c.samples, c.Now), DollarsPerHour: ratio(c.dollars, c.Now/3600),
		Fatal: float64(c.Fatal), Restarts: float64(c.Restarts), Reconfigurations: float64(c.Reconfigurations),
		Fractions: map[string]float64{},
	}
	r.Value = ratio(r.Throughput, r.DollarsPerHour)
	for p, seconds := range c.spent {
		r.Fractions[PhaseNames[p]] = ratio(seconds, c.Now)
	}
	first, last, machines := 0.0, 0.0, 0.0
	for _, e := range t.Events[:events] {
		if e.Add {
			machines++
			continue
		}
		if r.Lost++; r.Lost == 1 {
			first = e.Seconds
		}
		last = e.Seconds
	}
	r.Interval = ratio(last-first, 3600*(r.Lost-1))
	r.Lifetime = ratio(c.machineSeconds, 3600*machines)
	return r
}

// Mean returns the mean of runs of one system; the zero Run for none.
func Mean(runs []Run) Run {
	sum := Run{Fractions: map[string]float64{}}
	n := float64(len(runs))
	for _, r := range runs {
		sum.System = r.System
		from, to := r.numbers(), sum.numbers()
		for k := range to {
			*to[k] += *from[k] / n
		}
		for _, name := range PhaseNames {
			sum.Fractions[name] += r.Fractions[name] / n
		}
	}
	return sum
}

// numbers returns the numbers of a run.
func (r *Run) numbers() []*float64 {
	return []*float64{&r.Hours, &r.Samples, &r.Dropped, &r.Throughput, &r.DollarsPerHour, &r.Value, &r.Machines, &r.Lost,
		&r.Interval, &r.Lifetime, &r.Fatal, &r.Restarts, &r.Reconfigurations}
}
