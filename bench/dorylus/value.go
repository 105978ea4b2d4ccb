package dorylus

import (
	"fmt"
	"math"
	"slices"

	"siafu/bench/trials"
	"siafu/ranks/config"
	"siafu/ranks/report/chart"
	"siafu/ranks/simulate"
)

// outcome is a row of table 4: the cost of training to the target.
type outcome struct {
	work
	timed
	on                 backend
	epochs             float64
	measured, modelled timeAndCost
}

func (b *bench) outcomes(s *trials.Sheet) (list []outcome) {
	for _, w := range b.works() {
		g := b.find(w.graph)
		m := b.modelOf(s, g, w.model)
		modes := []mode{async0, pipe, pipe}
		if w.synchronous {
			modes[0] = pipe
		}
		to := trials.Target(b.trainForAccuracy(s, g, w.model, pipe))
		var epochs []float64
		for _, mode := range modes {
			epochs = append(epochs, trials.Reaching(b.trainForAccuracy(s, g, w.model, mode), to))
		}
		for k, on := range backends {
			t := b.time(s, g, w.model, on, modes[k])
			list = append(list, outcome{work: w, timed: t, on: on, epochs: epochs[k],
				measured: b.localCost(t, epochs[k]), modelled: b.spent(m, w.cluster(on), epochs[k], on)})
		}
	}
	return list
}

var unknown = timeAndCost{math.NaN(), math.NaN()}

// localCost returns time and cost on this machine of epochs like a training's.
func (b *bench) localCost(t timed, epochs float64) timeAndCost {
	servers, invoked := b.localDollars(t, epochs)
	return timeAndCost{t.each * epochs, servers + invoked}
}

// localDollars returns the dollars of this machine and of functions for epochs like a training's.
func (b *bench) localDollars(t timed, epochs float64) (servers, invoked float64) {
	seconds := t.each * epochs
	if math.IsInf(seconds, 0) || math.IsNaN(seconds) {
		return seconds, seconds
	}
	s := t.run.Summary
	return b.price.USD(1, seconds), s.LambdaUSD / float64(max(s.Epochs, 1)) * epochs
}

// epoch returns the modelled seconds of an epoch on a cluster, and those of its network cards; NaN
// if the model has none.
func (b *bench) epoch(m Model, c cluster, on backend, overlap bool) (seconds, cards float64) {
	if !b.covers(m, c, on) {
		return math.NaN(), math.NaN()
	}
	_, cards, _ = m.Epoch(c, on)
	return m.Seconds(c, on, overlap), cards
}

// spent returns the modelled time and cost of epochs on a cluster.
func (b *bench) spent(m Model, c cluster, epochs float64, on backend) timeAndCost {
	each, _ := b.epoch(m, c, on, true)
	servers, invoked := m.Cost(c, each*epochs, epochs, on)
	return timeAndCost{each * epochs, servers + invoked}
}

// value returns 1/(T × C); NaN if unknown.
func (s timeAndCost) value() float64 { return 1 / (s.seconds * s.usd) }

func (o outcome) label() string {
	if o.on.name == functions.name && o.synchronous {
		return o.on.name + " (pipe)"
	}
	return o.on.name
}

// paper returns the paper's values in table 4.
func (o outcome) paper() timeAndCost {
	for k, on := range backends {
		if p := o.printed[k]; on.name == o.on.name && p.seconds > 0 {
			return p
		}
	}
	return unknown
}

// table4 writes time and cost of networks, graphs and modes.
func (b *bench) table4(s *trials.Sheet) {
	for _, o := range b.outcomes(s) {
		p := o.paper()
		s.Add(o.model, o.graph, o.label()+notRun(o.why), o.epochs, o.each, o.measured.seconds, o.measured.usd, o.modelled.seconds,
			o.modelled.usd, p.seconds, p.usd)
	}
	fmt.Fprintf(s, "measured dollars take this machine for %s; Dorylus is async (s=0), the others pipe\n", b.Instance)
}

// figure7 writes values relative to CPUs.
func (b *bench) figure7(s *trials.Sheet) {
	list := b.outcomes(s)
	bars := &chart.Chart{Name: "figure7",
		Title: "Figure 7: value of Dorylus to CPU only, modelled, and the paper's", X: "value to CPU only"}
	for k, o := range list {
		cpu, gpu := list[k/3*3+1], list[k/3*3+2] // backends has three
		modelled, printed := o.modelled.value()/cpu.modelled.value(), o.paper().value()/cpu.paper().value()
		s.Add(o.model, o.graph, o.label()+notRun(o.why), o.measured.value()/cpu.measured.value(), modelled, printed,
			o.modelled.value()/gpu.modelled.value(), o.paper().value()/gpu.paper().value())
		if o.on.name == functions.name {
			bars.Bars = append(bars.Bars, bar(o.model+" "+o.graph, functions.name, modelled)...)
			bars.Bars = append(bars.Bars, bar(o.model+" "+o.graph+", paper", cpuOnly.name, printed)...)
		}
	}
	s.Draw(bars)
}

// bar returns the bar of a number in a group's colour, none if unknown.
func bar(name, group string, x float64) []chart.Bar {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return []chart.Bar{{Group: groupOf(group), Name: name, Value: x, Text: trials.Number(x, 2)}}
}

// printed8 has the numbers of figure 8 in §7.4: performance and value relative to Dorylus on 4
// servers; NaN if not given.
var printed8 = map[string]spentRatio{
	"4 Dorylus": {1, 1}, "16 Dorylus": {2.82, 2.68},
	"8 CPU only": {1.1, math.NaN()},
}

// twice8 has the time of Dorylus relative to CPU only on twice as many servers (§7.4), by servers.
var twice8 = map[int]float64{4: 1.1, 8: 1.05}

type spentRatio struct{ performance, value float64 }

// figure8 writes clusters of c5n.4xlarge by their size.
func (b *bench) figure8(s *trials.Sheet) {
	g := b.sparse()
	m := b.modelOf(s, g, "gcn")
	pictures := []*chart.Chart{
		{Name: "figure8a", Title: "Figure 8(a): performance to Dorylus on 4 servers, modelled", X: "servers",
			Y: "performance", Whole: true},
		{Name: "figure8b", Title: "Figure 8(b): value to Dorylus on 4 servers, modelled", X: "servers", Y: "value", Whole: true},
	}
	var base, first timeAndCost
	for _, n := range []int{4, 8, 16, 32} {
		for _, on := range backends {
			c := cluster{"c5n.4xlarge", n}
			simulated, remote := unknown, on.name == functions.name
			if on.name == gpuOnly.name {
				c.instance = "p3.2xlarge"
			} else {
				simulated = b.simulate(s, g, c, remote)
			}
			each := b.spent(m, c, 1, on)
			if n == 4 && remote {
				base, first = each, simulated
			}
			if n == 4 && on.name == cpuOnly.name && math.IsNaN(base.seconds) { // functions were not measured
				base = each
			}
			for k, y := range []float64{base.seconds / each.seconds, each.value() / base.value()} {
				if !math.IsNaN(y) {
					addPoint(pictures[k], on.name, chart.Point{X: float64(n), Y: y})
				}
			}
			p, known := printed8[fmt.Sprint(n, " ", on.name)]
			if !known {
				p = spentRatio{math.NaN(), math.NaN()}
			}
			mode := on.name
			if on.name == gpuOnly.name {
				mode += " (p3.2xlarge)"
			}
			half, halfSimulated, halfPrinted := math.NaN(), math.NaN(), math.NaN()
			if twice, known := twice8[n]; remote && known {
				c.count = 2 * n
				half, halfSimulated, halfPrinted = each.seconds/b.spent(m, c, 1, cpuOnly).seconds,
					simulated.seconds/b.simulate(s, g, c, false).seconds, twice
			}
			s.Add(n, mode, each.compareWith(base), simulated.compareWith(first), p.performance, p.value, half, halfSimulated, halfPrinted)
		}
	}
	for _, c := range pictures {
		s.Draw(c)
	}
	fmt.Fprintf(s, "GCN on %s (%s), %d ranks recorded in step on CPUs; simulated: Dorylus in bounded asynchrony (s=0) with functions, CPU "+
		"only in step; all to Dorylus on 4\n", g.name, g.kind(), b.Ranks)
}

// addPoint adds a point to the line of a backend.
func addPoint(c *chart.Chart, name string, p chart.Point) {
	k := slices.IndexFunc(c.Lines, func(l chart.Line) bool { return l.Name == name })
	if k < 0 {
		k = len(c.Lines)
		c.Lines = append(c.Lines, chart.Line{Name: name, Group: groupOf(name)})
	}
	c.Lines[k].Points = append(c.Lines[k].Points, p)
}

// compareWith returns an epoch's seconds, and its performance and value relative to base.
func (e timeAndCost) compareWith(base timeAndCost) []float64 {
	return []float64{e.seconds, base.seconds / e.seconds, e.value() / base.value()}
}

// simulate simulates an epoch of a local run on a cluster, with the work and rows of the
// paper's graph, the paper's number of intervals, and two weight servers. With functions it
// uses bounded asynchrony (s=0), else synchronous training.
func (b *bench) simulate(s *trials.Sheet, g *graphOf, c cluster, remote bool) timeAndCost {
	t := trials.Trial{Data: g.Data, Ranks: b.Ranks, Record: true,
		Flags: b.flags("gcn", "--servers", "0", "--mode", "pipe", "--eval-every", "0", "--epochs", text(b.Timed), "--threads", "1")}
	if r, _ := b.runTrial(s, cpuOnly, t, s.Runner); r == nil {
		return unknown
	}
	var o simulate.Options
	edgeRatio, _ := g.ratios()
	folder := s.Folder(t)
	args := []string{folder, "--trace", trials.Timeline(folder), "--cluster", c.instance + ":" + text(c.count), "--scale",
		fmt.Sprint(edgeRatio), "--servers", "2",
		"--intervals", text(functionsAtOne), "--latency", "50us", "--epochs", "3", "--ghost-power", fmt.Sprint(b.GhostPower)}
	if remote {
		args = append(args, "--tensor", "lambda", "--lambda-tariff", tariffOfPaper, "--mode", "async", "--staleness", "0")
	}
	err := config.Parse(&o, op, args...)
	each := unknown
	if err == nil {
		var m simulate.Result
		m, each.usd, err = o.Replay()
		each.seconds = m.Epoch
	}
	s.Fail(err)
	return each
}
