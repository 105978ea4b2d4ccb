package dorylus

import (
	"fmt"
	"math"
	"slices"

	"siafu/bench/trials"
	"siafu/ranks/report/chart"
	"siafu/ranks/runfolder"
	"siafu/ranks/schedule"
)

// figure5 writes the epochs that each mode needs to reach the accuracy of the pipe.
func (b *bench) figure5(s *trials.Sheet) {
	s.Row("graph", "mode", "validation accuracy, measured", "target", "epochs to it, measured", "R, measured", "R, paper", "accuracy, paper")
	for _, g := range b.graphs {
		if g.known && g.accuracy == 0 && !slices.Equal(b.Only, []string{"figure5"}) {
			continue // Friendster's labels are random in the paper
		}
		curves := &chart.Chart{Name: "figure5-" + g.name, Title: "Figure 5, " + g.name, X: "epoch", Y: "validation accuracy, %", Whole: true}
		base, to := math.NaN(), math.NaN()
		for k, w := range []order{pipe, async0, async1} {
			list := b.trainForAccuracy(s, g, "gcn", w)
			if k == 0 {
				to = target(list)
			}
			epochs := trials.Reaching(list, to)
			if k == 0 {
				base = epochs
			}
			ratio, accuracy := "-", "-"
			if g.accuracy > 0 {
				accuracy, ratio = trials.Number(g.accuracy, 2), trials.Number(append([]float64{1}, g.ratio[:]...)[k], 2)
			}
			s.Row(g.name, w.name, trials.PlusMinus(trials.Best(list)), trials.Number(to, 2), trials.Number(epochs, 0),
				trials.Number(epochs/base, 2), ratio, accuracy)
			curves.Lines = append(curves.Lines, line(w.name, list, func(k int) float64 { return float64(k) }))
		}
		s.Draw(curves)
	}
}

// line returns the mean accuracy of trainings over x(epochs).
func line(name string, list []*trials.Result, x func(epochs int) float64) chart.Line {
	l := chart.Line{Group: groupOf(name), Name: name}
	var courses [][]float64
	for _, r := range list {
		courses = append(courses, accuracies(r))
	}
	for k := 0; ; k++ {
		var at []float64
		for _, c := range courses {
			if k < len(c) {
				at = append(at, c[k])
			}
		}
		if len(at) < len(courses) || len(at) == 0 {
			return l
		}
		mean, deviation := trials.MeanStd(at)
		l.Points = append(l.Points, chart.Point{X: x(k), Y: mean, Deviation: deviation})
	}
}

// accuracies returns the accuracies of the weights after 0, 1, 2 … epochs, in percent.
func accuracies(r *trials.Result) (list []float64) {
	for _, e := range r.Epochs {
		if e.ValAcc == nil {
			break
		}
		list = append(list, 100**e.ValAcc)
	}
	return append(list, 100*r.Summary.FinalValAcc)
}

// figure6 writes the time of an epoch relative to the pipe's.
func (b *bench) figure6(s *trials.Sheet) {
	s.Row("graph", "tensor work", "pipe s/epoch, measured", "no-pipe to pipe, measured", "async (s=0) to pipe, measured", "async (s=1) to pipe, measured",
		"no-pipe to pipe, modelled", "no-pipe to pipe, paper", "async (s=0 and 1) to pipe, paper")
	for _, g := range b.graphs {
		m := b.modelOf(s, g, "gcn")
		for _, on := range backends[:2] {
			cells, base, why := []string{}, math.NaN(), ""
			for k, w := range []order{pipe, nopipe, async0, async1} {
				t := b.time(s, g, "gcn", on, w)
				if k == 0 {
					base, cells, why = t.each, []string{trials.Number(t.each, 4)}, t.why
					continue
				}
				cells = append(cells, trials.Number(t.each/base, 2))
			}
			remote := on.name == functions.name
			modelled, printed := math.NaN(), "-"
			if m.covers(on) {
				c := b.clusterOf(g)
				modelled = m.Seconds(c, remote, false) / m.Seconds(c, remote, true)
			}
			if remote && g.name == "amazon" {
				printed = "1.9 (§7.6)"
			}
			s.Row(append(append([]string{g.name, on.name + notRun(why)}, cells...), trials.Number(modelled, 2), printed, "about 0.85")...)
		}
	}
	b.reasons(s)
}

// clusterOf returns the CPU cluster of a GCN on a graph.
func (b *bench) clusterOf(g *graphOf) cluster {
	for _, w := range b.works() {
		if w.graph == g.name {
			return w.cpu
		}
	}
	return cluster{}
}

// notRun marks a row that was not run.
func notRun(why string) string {
	if why == "" {
		return ""
	}
	return " (not run)"
}

// sparse returns the graph of figures 8 and 10: Amazon, or else the first one.
func (b *bench) sparse() *graphOf {
	if g := b.find("amazon"); g != nil {
		return g
	}
	return b.graphs[0]
}

// figure10a writes the seconds of tasks that do not overlap.
func (b *bench) figure10a(s *trials.Sheet) {
	g := b.sparse()
	head := []string{"task"}
	var columns []timed
	for _, on := range backends {
		t := b.time(s, g, "gcn", on, nopipe)
		columns = append(columns, t)
		head = append(head, on.name+" s/epoch, measured"+notRun(t.why))
	}
	s.Row(head...)
	picture := &chart.Chart{Name: "figure10a", Title: "Figure 10(a): seconds of tasks, no-pipe, " + g.name, X: "seconds"}
	row := func(name string, of func(runfolder.Epoch) float64) {
		cells := []string{name}
		for k, t := range columns {
			x := math.NaN()
			if t.run != nil {
				x = trials.PerEpoch([]*trials.Result{t.run}, of)
			}
			cells = append(cells, trials.Number(x, 4))
			picture.Bars = append(picture.Bars, bar(name+", "+backends[k].name, backends[k].name, x)...)
		}
		s.Row(cells...)
	}
	for _, task := range schedule.Kinds() {
		row(task, func(e runfolder.Epoch) float64 { return e.TaskSeconds[task] })
	}
	row("without a task", func(e runfolder.Epoch) float64 { return e.WaitSeconds })
	row("epoch", trials.Seconds)
	if len(picture.Bars) > 0 {
		s.Draw(picture)
	}
	fmt.Fprintf(s, "GCN on %s (%s); a worker's mean of the slowest rank; of functions AV and ∇AV are what the rank does for them, and the wait for them is without a task\n", g.name, g.kind())
	b.reasons(s)
}

// variants has the five variants of figure 10(b).
var variants = []struct {
	name string
	on   backend
	way  order
}{
	{"no-pipe", functions, nopipe}, {"pipe", functions, pipe}, {"async (s=0)", functions, async0},
	{"CPU only", cpuOnly, pipe}, {"GPU only", gpuOnly, pipe},
}

// figure10b writes the dollars of servers and of functions for an epoch.
func (b *bench) figure10b(s *trials.Sheet) {
	g := b.sparse()
	m := b.modelOf(s, g, "gcn")
	c := b.clusterOf(g)
	s.Row("variant", "s/epoch, measured", "servers $/epoch, measured", "functions $/epoch, measured",
		"s/epoch, modelled", "servers $/epoch, modelled", "functions $/epoch, modelled", "paper")
	for _, v := range variants {
		t := b.time(s, g, "gcn", v.on, v.way)
		remote := v.on.name == functions.name
		servers, invoked := math.NaN(), math.NaN()
		if t.run != nil {
			sum := t.run.Summary
			servers, invoked = dollars(b.price, t.each), sum.LambdaUSD/float64(max(sum.Epochs, 1))
		}
		each, hosts, calls := math.NaN(), math.NaN(), math.NaN()
		if m.covers(v.on) {
			each = m.Seconds(c, remote, v.way.name != nopipe.name)
			hosts, calls = m.Cost(c, each, 1, remote)
		}
		says := "-"
		if remote {
			says = "functions about as much as servers"
		}
		s.Row(v.name+notRun(t.why), trials.Number(t.each, 4), number(servers), number(invoked), trials.Number(each, 4), number(hosts), number(calls), says)
	}
	fmt.Fprintf(s, "GCN on %s (%s); measured on this machine as %s, modelled on %s\n", g.name, g.kind(), b.Instance, c)
	b.reasons(s)
}

// basis writes the parameters of the cost models, and compares the models with runs on this
// machine.
func (b *bench) basis(s *trials.Sheet) {
	s.Row("model", "graph", "edges larger", "vertices larger", "graph work, processor-s", "tensor work, processor-s", "rows MB of a rank", "functions MB", "invocations",
		"no-pipe here, modelled to measured", "pipe here, modelled to measured")
	for _, w := range b.works() {
		g := b.find(w.graph)
		m := b.modelOf(s, g, w.model)
		if !m.covers(cpuOnly) {
			s.Row(w.model, w.graph, "-", "-", "-", "-", "-", "-", "-", "-", "-")
			continue
		}
		edgeRatio, vertexRatio := g.ratios()
		here := (m.Graph/edgeRatio + m.Tensor/vertexRatio) / float64(b.Ranks*b.threads())
		ratios := []string{}
		for _, way := range []order{nopipe, pipe} {
			t := b.time(s, g, w.model, cpuOnly, way)
			ratios = append(ratios, trials.Number(here/t.each, 2))
		}
		s.Row(append([]string{w.model, w.graph, trials.Number(edgeRatio, 1), trials.Number(vertexRatio, 1), trials.Number(m.Graph, 2), trials.Number(m.Tensor, 2),
			trials.Number(m.Rows/1e6, 1), trials.Number(m.Values/1e6, 1), trials.Number(m.Invocations, 0)}, ratios...)...)
	}
	fmt.Fprintln(s, "an epoch at the paper's size; Model in the package says how times and dollars follow from these")
	b.reasons(s)
}
