package spot

import (
	"slices"
	"strings"

	"siafu/bench/trials"
	"siafu/ranks/report/chart"
	"siafu/slurm/spot"
)

// parts returns the parts in the order of the paper; systems is our own.
func (o Options) parts() []trials.Part { return append(o.simulatedParts(), o.otherParts()...) }

// simulatedParts returns the first parts of the paper, which simulate pipelines on spot machines.
func (o Options) simulatedParts() []trials.Part {
	return []trials.Part{
		{Name: "figure3.2", Title: "moments of losses in a day",
			Paper: "127 moments on EC2, 120 with all losses in one zone; 328 on GCP, 316 in one zone",
			Why:   "generated traces with the same number of moments; the shapes of the paper's traces are in its figure only",
			Write: o.figure32,
			Columns: []string{"cloud", "machines", "moments|%.0f", "in one zone|%.0f", "machines per moment|%.2f", "lost % per hour|%.1f",
				"highest %|%.1f"}},
		{Name: "table3.1", Title: "networks, data and pipelines", Paper: "six networks; D is 4, P is 6 or 12",
			Why: "our networks are graph neural networks with a stage of two layers", Write: o.table31,
			Columns: []string{"network", "data", "D", "P"}},
		{Name: "table3.2", Title: "Bamboo on one-GPU machines", Paper: "BERT at 10 %: 98.87 samples/s for $42.23 an hour",
			Why: "generated traces; the paper's V100 machines and its segments of a trace are not available", Write: o.table32,
			Columns: []string{"network", "losses per hour|%.0f %%", "samples/s|%.2f", "$/h|%.2f", "value|%.2f", "value on demand|%.2f"}},
		{Name: "table3.3", Title: "BERT until completion", Paper: "value 2.10 at a probability of 0.01 and 1.59 at 0.5",
			Why: "one fitted number, the rate without losses", Write: o.table33,
			Columns: []string{"probability|%.2f", "preemptions|%.2f", "interval h|%.2f", "life h|%.2f", "fatal|%.2f", "machines|%.2f",
				"samples/s|%.2f", "$/h|%.2f", "value|%.2f"}},
		{Name: "table3.4", Title: "BERT with a pipeline depth of 3.3 times that on demand", Paper: "value 0.60 at 0.01 and 0.49 at 0.5",
			Why: "one fitted number, the relative rate of the long pipeline", Write: o.table34,
			Columns: []string{"probability|%.2f", "samples/s|%.2f", "$/h|%.2f", "value|%.2f", "fatal|%.2f"}},
		{Name: "figure3.3", Title: "time of GPT-2 on 64 machines", Paper: "23 % of the time is useful with checkpoints, 84 % with Bamboo",
			Why: "a generated trace with the losses of the authors' published one: 39 % an hour, 3 machines a moment", Write: o.figure33,
			Columns: []string{"system", "useful %|%.1f", "wasted %|%.1f", "restarting %|%.1f", "recovering, reconfiguring %|%.1f",
				"waiting %|%.1f", "paper, useful %|%.0f"}},
		{Name: "figure3.4", Title: "samples dropped by suspended pipelines", Paper: "more steps to a loss for higher drop rates",
			Why: "four pipelines of four stages; no network is trained, so there is no loss to compare", Write: o.figure34,
			Columns: []string{"losses per hour|%.0f %%", "dropped samples %|%.2f", "samples/s|%.2f", "fatal|%.2f"}},
		{Name: "figure3.11", Title: "a day of BERT and VGG at 10 %",
			Paper: "throughput and cost follow the number of machines; the value stays above that on demand",
			Why:   "a generated trace", Write: o.figure311,
			Columns: []string{"network", "hour|%.1f", "machines", "samples/s|%.2f", "$/h|%.2f", "value|%.2f", "value on demand|%.2f"}},
		{Name: "figure3.12", Title: "Bamboo and Varuna with BERT",
			Paper: "Bamboo has 2.5 and 2.7 times the throughput at 10 and 16 %, and 1.67 and 1.64 times the value; Varuna hangs at 33 %",
			Why:   "Varuna never hangs in a simulation, and its own time of a restart is unknown: both have the same", Write: o.figure312,
			Columns: []string{"losses per hour|%.0f %%", "bamboo samples/s|%.2f", "varuna samples/s|%.2f", "ratio", "bamboo value|%.2f",
				"varuna value|%.2f", "ratio"}},
	}
}

// otherParts returns modelled, data-parallel and measured parts.
func (o Options) otherParts() []trials.Part {
	return []trials.Part{
		{Name: "table3.5", Title: "overhead of redundant computation, modelled",
			Paper: "BERT 7.01, 19.77 and 71.51 %, ResNet 7.65, 9.51 and 64.24 %",
			Why: "the cells of lazy FRC are inputs, those of eager FRC are fitted with one number each, those of eager BRC follow; " +
				"no GPU runs", Write: o.table35},
		{Name: "table3.6", Title: "throughput within a zone and across zones, modelled",
			Paper: "across zones 0.985 of the throughput for BERT, 0.966 for VGG19",
			Why:   "link rates are limits of AWS; the paper states neither its link rates nor the time in which its bytes were sent",
			Write: o.table36,
			Columns: []string{"network", "placement", "link Gbit/s|%.0f", "MB per microbatch|%.1f", "samples/s|%.2f",
				"relative to one zone|%.3f", "GiB in the paper|%.2f"}},
		{Name: "table3.7", Title: "pure data parallelism, simulated",
			Paper:   "Bamboo has 1.64 times the throughput of checkpoints and 1.22 times the value",
			Why:     "the paper's time of a restart is unknown; here it is 30 s, and a loss costs no more than a checkpoint's interval",
			Write:   o.table37,
			Columns: []string{"network", "system", "losses per hour|%.0f %%", "samples/s|%.2f", "$/h|%.2f", "value|%.2f"}},
		{Name: "figure3.13", Title: "pauses after a loss, modelled", Paper: "eager FRC shortens a pause by ~35 %",
			Why: "the heights of its bars are in the figure only", Write: o.figure313},
		{Name: "figure3.14", Title: "bubbles and forward passes of BERT, modelled",
			Paper: "the bubble of the first 4 stages has room for all of the FRC, that of the last 4 for ~60 %",
			Why:   "the growth of the stages is fitted to these two statements", Write: o.figure314,
			Columns: []string{"network", "stage", "forward|%.3f", "bubble|%.3f", "redundant forward|%.3f", "covered %|%.0f", "paper"}},
		{Name: "failures", Title: "useful time with a failure every 10 minutes",
			Why: "inputs of BERT; the text with the fractions that Oobleck's paper published is unavailable here", Write: o.failures,
			Columns: []string{"system", "useful %|%.1f", "published"}},
		{Name: "systems", Title: "value of all systems, same traces",
			Why: "inputs of BERT; each system's own overhead besides redundant computation is not included", Write: o.systems},
		{Name: "pause", Title: "time lost with a rank", Why: "measured with siafu launch; epochs are repeated from the state or the " +
			"checkpoint that a run continues from", Write: o.pause,
			Columns: []string{"after a loss", "losses", "s until training begins", "s until an epoch has ended", "epochs repeated",
				"other ranks lost"}, Extra: true},
		{Name: "pipelines", Title: "overhead and pauses of trained pipelines",
			Paper: "table 3.5 and figure 3.13: the overheads of BERT and ResNet, and a pause that eager FRC shortens by ~35 %",
			Why: "the stages share the cores of a machine, so that redundant passes fill no bubble; the network, its links and its times " +
				"are others", Write: o.pipelines,
			Columns: []string{"redundancy", "runs", "s of an epoch|%.3f", "overhead %", "BERT, ResNet %", "updates resumed",
				"s until training begins", "s until the update has ended"}, Extra: true},
	}
}

func network(name string) spot.Inputs {
	in, err := spot.Named(name)
	if err != nil {
		panic(err) // a programmer's error
	}
	return in
}

// beside returns a cell with our number and the paper's.
func beside(ours, paper float64) trials.Compared { return trials.Compared{Ours: ours, Paper: paper} }

func entry(name string) spot.Entry {
	list, err := spot.Select([]string{name})
	if err != nil {
		panic(err) // a programmer's error
	}
	return list[0]
}

// bert returns the inputs of tables 3.3 and 3.4.
func bert() (usual, long spot.Inputs) {
	usual = network("bert")
	usual.Samples = bertSamples
	long = usual
	long.Depth = longDepth
	long.Iteration /= longRate
	return usual, long
}

// repeat simulates Bamboo on random traces.
func (o Options) repeat(in spot.Inputs, probability float64) spot.Run {
	return spot.Repeat(in, entry("bamboo"), spot.Random{Rate: probability, Zones: o.Zones, Seed: o.Seed, Runs: o.Runs})
}

func (o Options) table33(t *trials.Sheet) {
	in, _ := bert()
	for _, p := range table33 {
		r := o.repeat(in, p.probability)
		t.Add(p.probability, beside(r.Lost, p.preemptions), beside(r.Interval, p.interval), beside(r.Lifetime, p.lifetime),
			beside(r.Fatal, p.fatal), beside(r.Machines, p.nodes), beside(r.Throughput, p.throughput),
			beside(r.DollarsPerHour, p.dollars), beside(r.Value, p.value))
	}
}

func (o Options) table34(t *trials.Sheet) {
	_, in := bert()
	for _, p := range table34 {
		r := o.repeat(in, p.probability)
		t.Add(p.probability, beside(r.Throughput, p.throughput), beside(r.DollarsPerHour, p.dollars), beside(r.Value, p.value), r.Fatal)
	}
}

// trace completes options and makes the trace of a seed: a day.
func (o Options) trace(g spot.GenerateOptions, seed int) *spot.Trace {
	g.Hours, g.Zones, g.Seed = 24, o.Zones, o.Seed+uint64(seed)
	if g.Regrow == 0 {
		g.Regrow = 20
	}
	trace, err := spot.Generate(g)
	if err != nil {
		panic(err) // the options are constants in range
	}
	return trace
}

// mean returns the mean of a system's runs on traces of different seeds.
func (o Options) mean(in spot.Inputs, system string, g spot.GenerateOptions) spot.Run {
	runs := make([]spot.Run, o.few())
	for k := range runs {
		runs[k] = spot.Simulate(in, spot.Source{Trace: o.trace(g, k)}, entry(system).New())
	}
	return spot.Mean(runs)
}

// losses returns the options of traces with losses as a fraction of the machines per hour.
func losses(machines int, rate float64) spot.GenerateOptions {
	return spot.GenerateOptions{Machines: machines, Rate: rate, Bulk: 3, Across: 7.0 / 127}
}

// replay returns the mean of a system's runs on such traces.
func (o Options) replay(in spot.Inputs, system string, rate float64) spot.Run {
	return o.mean(in, system, losses(in.Machines(), rate))
}

func (o Options) figure32(t *trials.Sheet) {
	for _, cloud := range []struct {
		name             string
		machines         int
		moments, oneZone float64
	}{{"EC2", 64, 127, 120}, {"GCP", 80, 328, 316}} {
		const bulk = 3
		g := spot.GenerateOptions{Machines: cloud.machines, Bulk: bulk, Across: 1 - cloud.oneZone/cloud.moments}
		g.Rate = cloud.moments / 24 * bulk / float64(cloud.machines)
		var moments, one, per, percent, highest float64
		for k := range o.few() {
			s := o.trace(g, k).Statistics()
			n := float64(o.few())
			moments, one, per = moments+float64(s.Moments)/n, one+float64(s.OneZone)/n, per+s.LostPerMoment/n
			percent, highest = percent+s.PercentPerHour/n, highest+s.HighestPercent/n
		}
		t.Add(cloud.name, cloud.machines, beside(moments, cloud.moments), beside(one, cloud.oneZone), per, percent, highest)
	}
}

func (o Options) table32(t *trials.Sheet) {
	for _, n := range spot.Networks() {
		in := network(n.Name)
		for k, rate := range segments {
			r := o.replay(in, "bamboo", rate)
			t.Add(n.Name, 100*rate, beside(r.Throughput, n.Bamboo[k]), beside(r.DollarsPerHour, n.BambooCost[k]),
				beside(r.Value, n.Bamboo[k]/n.BambooCost[k]), n.DemandS/n.DemandDollar)
		}
	}
}

// figure33 writes the fractions of time of the systems on traces like the authors' published one
// (uclasystem/bamboo, simulation/traces/trace--full-64-node-trace): 133 losses at 44 moments in
// 5.3 hours, before all machines were stopped. Times are those of their profile (run-86): a mean
// of 84 s for 16 restarts, 89 s until a checkpoint is complete, 8.4 s an iteration, 180 s until a
// machine is ready.
func (o Options) figure33(t *trials.Sheet) {
	in := published64()
	for _, s := range []struct {
		name  string
		paper float64
	}{{"checkpoint", 23}, {"bamboo", 84}} {
		r := o.replay(in, s.name, rate64)
		f := r.Fractions
		t.Add(s.name, 100*f["useful"], 100*f["wasted"], 100*f["restarting"], 100*f["recovering"]+100*f["reconfiguring"],
			100*f["waiting"], s.paper)
	}
}

// rate64 is the fraction of 64 machines lost per hour in the authors' trace.
const rate64 = 133 / 5.3 / 64

// published64 returns the inputs of figure 3.3.
func published64() spot.Inputs {
	in := network("gpt")
	in.Depth, in.MinDepth, in.Replicas, in.Iteration = 16, 16, 4, 8.4
	in.Restart, in.Startup, in.CheckpointEvery, in.CheckpointTime = 84, 180, 1, 89
	return in
}

func (o Options) figure34(t *trials.Sheet) {
	in := network("gpt")
	in.Depth, in.MinDepth = 4, 4
	for _, rate := range []float64{0.01, 0.05, 0.1, 0.25, 0.5} {
		r := o.replay(in, "dropping", rate)
		t.Add(100*rate, 100*r.Dropped/(r.Samples+r.Dropped), r.Throughput, r.Fatal)
	}
}

// figure311 writes hours of a day, and draws throughput and value.
func (o Options) figure311(t *trials.Sheet) {
	for _, n := range spot.Networks() {
		if n.Name != "bert" && n.Name != "vgg" {
			continue
		}
		var speed, value, base []chart.Point
		hours := o.day(network(n.Name))
		for k := 1; k < len(hours); k++ {
			before, now := hours[k-1], hours[k]
			passed := (now.Seconds - before.Seconds) / 3600
			rate, dollars := (now.Samples-before.Samples)/passed/3600, (now.Dollars-before.Dollars)/passed
			at := now.Seconds / 3600
			speed, value = append(speed, chart.Point{X: at, Y: rate}), append(value, chart.Point{X: at, Y: rate / dollars})
			base = append(base, chart.Point{X: at, Y: n.DemandS / n.DemandDollar})
			t.Add(n.Name, at, now.Machines, rate, dollars, rate/dollars, n.DemandS/n.DemandDollar)
		}
		t.Draw(&chart.Chart{Name: n.Name + "-speed", Title: "throughput of " + n.Name, X: "hours", Y: "samples/s", Whole: true,
			Lines: []chart.Line{{Name: "bamboo", Points: speed}}})
		t.Draw(&chart.Chart{Name: n.Name + "-value", Title: "value of " + n.Name, X: "hours", Y: "samples/s per $/h", Whole: true,
			Lines: []chart.Line{{Name: "bamboo", Points: value}, {Name: "on demand", Points: base}}})
	}
}

// day returns the state of a training after each hour of a trace with 10 % of losses per hour.
func (o Options) day(in spot.Inputs) []spot.View {
	hours := []spot.View{{}}
	source := spot.Source{Trace: o.trace(losses(in.Machines(), segments[0]), 0), Every: 3600}
	source.Watch = func(v spot.View) { hours = append(hours, v) }
	spot.Simulate(in, source, entry("bamboo").New())
	return hours
}

func (o Options) figure312(t *trials.Sheet) {
	paper := [][2]string{{"2.5", "1.67"}, {"2.7", "1.64"}, {"hangs", "hangs"}}
	for k, rate := range segments {
		in := network("bert")
		b := o.replay(in, "bamboo", rate)
		v := o.replay(onDemand(in), "varuna", rate)
		t.Add(100*rate, b.Throughput, v.Throughput, trials.Number(b.Throughput/v.Throughput, 2)+" ("+paper[k][0]+")",
			b.Value, v.Value, trials.Number(b.Value/v.Value, 2)+" ("+paper[k][1]+")")
	}
}

// onDemand returns the inputs of the same network with the machines on demand, as Varuna had: two
// thirds of the depth, at the rate of table 3.2.
func onDemand(in spot.Inputs) spot.Inputs {
	k := slices.IndexFunc(spot.Networks(), func(n spot.Network) bool { return n.Name == "bert" })
	in.Depth = in.MinDepth
	in.Iteration = in.Batch / spot.Networks()[k].DemandS
	return in
}

// systems writes the value of each system, one column per rate, and draws it.
func (o Options) systems(t *trials.Sheet) {
	percents := []float64{1, 5, 10, 16, 33, 50} // lost per hour
	t.Columns(append([]string{"system"}, trials.Columns("%g %%: value, useful %%, fatal", percents)...)...)
	var lines []chart.Line
	for _, e := range spot.Systems() {
		line := chart.Line{Name: e.Name}
		var cells []string
		for _, x := range percents {
			r := o.replay(network("bert"), e.Name, x/100)
			cells = append(cells, strings.Join([]string{trials.Number(r.Value, 2), trials.Number(100*r.Fractions["useful"], 1),
				trials.Number(r.Fatal, 1)}, ", "))
			line.Points = append(line.Points, chart.Point{X: x, Y: r.Value})
		}
		t.Add(e.Name, cells)
		lines = append(lines, line)
	}
	t.Draw(&chart.Chart{Name: "systems", Title: "value by losses", X: "losses per hour, %",
		Y: "samples/s per $/h", Whole: true, Lines: lines})
}
