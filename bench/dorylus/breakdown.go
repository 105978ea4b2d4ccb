package dorylus

import (
	"context"
	"fmt"
	"math"

	"siafu/bench/trials"
	"siafu/ranks/report/chart"
	"siafu/ranks/runfolder"
	"siafu/ranks/schedule"
)

// sparse returns the graph of figures 8 and 10: Amazon, or else the first one.
func (b *bench) sparse() *graphOf {
	if g := b.find("amazon"); g != nil {
		return g
	}
	return b.graphs[0]
}

// figure10a writes the seconds of tasks that do not overlap.
func (b *bench) figure10a(ctx context.Context, s *trials.Sheet) error {
	g := b.sparse()
	head := []string{"task"}
	var columns []timed
	for _, on := range backends {
		t, err := b.time(ctx, g, "gcn", on, nopipe)
		if err != nil {
			return err
		}
		columns = append(columns, t)
		head = append(head, on.name+" s/epoch, measured"+notRun(t.why))
	}
	s.Head(head...)
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
	return b.reasons(s)
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
func (b *bench) figure10b(ctx context.Context, s *trials.Sheet) error {
	g := b.sparse()
	m, err := b.modelOf(ctx, g, "gcn")
	if err != nil {
		return err
	}
	c := b.clusterOf(g)
	s.Head("variant", "s/epoch, measured", "servers $/epoch, measured", "functions $/epoch, measured",
		"s/epoch, modelled", "servers $/epoch, modelled", "functions $/epoch, modelled", "paper")
	for _, v := range variants {
		t, err := b.time(ctx, g, "gcn", v.on, v.way)
		if err != nil {
			return err
		}
		remote := v.on.name == functions.name
		servers, invoked := math.NaN(), math.NaN()
		if t.run != nil {
			sum := t.run.Summary
			servers, invoked = dollars(b.price, t.each), sum.LambdaUSD/float64(max(sum.Epochs, 1))
		}
		each, hosts, calls := math.NaN(), math.NaN(), math.NaN()
		if m.covers(v.on) {
			each = m.Seconds(c, remote, v.way.name != nopipe.name)
			if hosts, calls, err = m.Cost(c, each, 1, remote); err != nil {
				return err
			}
		}
		says := "-"
		if remote {
			says = "functions about as much as servers"
		}
		s.Row(v.name+notRun(t.why), trials.Number(t.each, 4), number(servers), number(invoked), trials.Number(each, 4), number(hosts), number(calls), says)
	}
	fmt.Fprintf(s, "GCN on %s (%s); measured on this machine as %s, modelled on %s\n", g.name, g.kind(), b.Instance, c)
	return b.reasons(s)
}

// basis writes the parameters of the cost models, and compares the models with runs on this
// machine.
func (b *bench) basis(ctx context.Context, s *trials.Sheet) error {
	s.Head("model", "graph", "edges larger", "vertices larger", "graph work, processor-s", "tensor work, processor-s", "rows MB of a rank", "functions MB", "invocations",
		"no-pipe here, modelled to measured", "pipe here, modelled to measured")
	for _, w := range b.works() {
		g := b.find(w.graph)
		m, err := b.modelOf(ctx, g, w.model)
		if err != nil {
			return err
		}
		if !m.covers(cpuOnly) {
			s.Row(w.model, w.graph, "-", "-", "-", "-", "-", "-", "-", "-", "-")
			continue
		}
		edges, vertices := g.larger()
		here := (m.Graph/edges + m.Tensor/vertices) / float64(b.Ranks*b.threads())
		ratios := []string{}
		for _, way := range []order{nopipe, pipe} {
			t, err := b.time(ctx, g, w.model, cpuOnly, way)
			if err != nil {
				return err
			}
			ratios = append(ratios, trials.Number(here/t.each, 2))
		}
		s.Row(append([]string{w.model, w.graph, trials.Number(edges, 1), trials.Number(vertices, 1), trials.Number(m.Graph, 2), trials.Number(m.Tensor, 2),
			trials.Number(m.Rows/1e6, 1), trials.Number(m.Values/1e6, 1), trials.Number(m.Invocations, 0)}, ratios...)...)
	}
	fmt.Fprintln(s, "an epoch at the paper's size; Model in the package says how times and dollars follow from these")
	return b.reasons(s)
}
