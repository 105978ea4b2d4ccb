package dorylus

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"siafu/bench/trials"
	"siafu/internal/durable"
	"siafu/ranks/report/chart"
)

// system is a line of figure 9 and table 5.
type system struct {
	name string // the paper's, if it has one
	here string // its substitute here
	on   backend
	way  order
	best map[string]float64 // accuracy at its end, by graph, in percent (§7.5)
	less bool               // a missing system: on names it
}

// batches returns a system's flags of mini-batches.
func batches(name, kind string) (backend, string) {
	return backend{name, []string{"--batch", kind}}, "--batch " + kind
}

func sampling(name, kind string, best map[string]float64) system {
	on, here := batches(name, kind)
	return system{name: name, here: here, on: on, way: pipe, best: best}
}

// systems returns the paper's systems in its order, and siafu's.
func systems() []system {
	return []system{
		{name: "Dorylus", here: "functions, async (s=0)", on: functions, way: async0, best: map[string]float64{"reddit-small": 95.44, "amazon": 67.01}},
		{name: "Dorylus (GPU only)", here: "--tensor cuda", on: gpuOnly, way: pipe},
		sampling("DGL (sampling)", "neighbor:25,10", map[string]float64{"reddit-small": 93.90, "amazon": 65.78}),
		{name: "DGL (non-sampling)", here: "PyTorch, one process", on: backend{name: "DGL (non-sampling)"}, way: pipe, best: map[string]float64{"reddit-small": 94.01}},
		{name: "AliGraph", here: "samples as the line of DGL (sampling) does, from servers of its own", on: backend{name: "AliGraph"},
			way: pipe, best: map[string]float64{"reddit-small": 91.12, "amazon": 65.23}, less: true},
		{name: "CPU only", here: "--mode pipe", on: cpuOnly, way: pipe},
		sampling("Cluster-GCN", "cluster:8", nil),
		sampling("GNNAutoScale", "history:8", nil),
		sampling("VR-GCN", "variates:8,2", nil),
	}
}

// raceResult is the result of a system on a graph.
type raceResult struct {
	system
	timed
	list []*trials.Result
}

// raceSystems trains all systems on a graph.
func (b *bench) raceSystems(ctx context.Context, g *graphOf) (all []raceResult, err error) {
	for _, s := range systems() {
		r := raceResult{system: s, timed: timed{each: math.NaN()}}
		switch {
		case s.less:
			r.why = s.here
		case s.name == "DGL (non-sampling)":
			r.timed, err = b.timeRivals(ctx, g, "gcn")
		default:
			r.timed, err = b.time(ctx, g, "gcn", s.on, s.way)
		}
		if err == nil && r.run != nil {
			if r.list, err = b.trainings(ctx, g, s); err != nil {
				return nil, err
			}
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// trainings returns the trainings of a system for accuracy. Full-graph accuracy depends on the
// mode, not on where tensor work runs.
func (b *bench) trainings(ctx context.Context, g *graphOf, s system) (list []*trials.Result, err error) {
	if k := slices.Index(s.on.flags, "--batch"); k >= 0 {
		list, _, err = b.trainWith(ctx, g, "gcn", s.on, b.Epochs, s.on.flags...)
		return list, err
	}
	return b.trainForAccuracy(ctx, g, "gcn", s.way)
}

// raceGraphs returns the graphs of figure 9 and table 5, and graphs that are not in the paper.
func (b *bench) raceGraphs() []*graphOf {
	return slices.DeleteFunc(slices.Clone(b.graphs), func(g *graphOf) bool {
		return g.known && g.name != "reddit-small" && g.name != "amazon"
	})
}

// shares has the columns of figure 9: fractions of the time of synchronous training on CPUs.
var shares = []float64{0.05, 0.1, 0.2, 0.5, 1}

// figure9 writes accuracies over time, and all points in a file.
func (b *bench) figure9(ctx context.Context, s *trials.Sheet) error {
	head := []string{"graph", "system", "here", "s/epoch, measured"}
	for _, x := range shares {
		head = append(head, fmt.Sprintf("at %g %% of CPU only's time", 100*x))
	}
	s.Head(append(head, "best validation accuracy, measured", "best accuracy, paper")...)
	var csv strings.Builder
	csv.WriteString("graph,system,epoch,seconds,validation\n")
	for _, g := range b.raceGraphs() {
		all, err := b.raceSystems(ctx, g)
		if err != nil {
			return err
		}
		whole := math.NaN()
		for _, r := range all {
			if r.name == cpuOnly.name {
				whole = r.each * float64(b.Epochs)
			}
		}
		picture := &chart.Chart{Name: "figure9-" + g.name, Title: "Figure 9, " + g.name, X: "seconds", Y: "validation accuracy, %", Whole: true}
		for _, r := range all {
			course := line(r.name, r.list, func(k int) float64 { return float64(k) * r.each })
			cells := []string{g.name, r.name + notRun(r.why), r.here, trials.Number(r.each, 4)}
			for _, x := range shares {
				cells = append(cells, trials.Number(at(course, x*whole), 2))
			}
			best := math.NaN()
			if p, known := r.best[g.name]; known {
				best = p
			}
			s.Row(append(cells, trials.PlusMinus(trials.Best(r.list)), trials.Number(best, 2))...)
			if len(course.Points) > 0 {
				picture.Lines = append(picture.Lines, course)
			}
			for k, q := range course.Points {
				fmt.Fprintf(&csv, "%s,%s,%d,%.4f,%.3f\n", g.name, r.name, k, q.X, q.Y)
			}
		}
		s.Draw(picture)
	}
	path := filepath.Join(b.Work, "figure9.csv")
	fmt.Fprintf(s, "all points: %s\n", path)
	if err := durable.WriteFile(op, path, []byte(csv.String()), 0o666); err != nil {
		return err
	}
	return b.reasons(s)
}

// at returns the value of a line at x, NaN before its first point.
func at(l chart.Line, x float64) float64 {
	y := math.NaN()
	for _, q := range l.Points {
		if q.X > x {
			break
		}
		y = q.Y
	}
	return y
}

// below has the difference in points of Dorylus's best and the paper's targets of table 5.
var below = map[string]float64{"reddit-small": 95.44 - 93.90, "amazon": 67.01 - 63.00}

// table5 writes time and cost to a target accuracy.
func (b *bench) table5(ctx context.Context, s *trials.Sheet) error {
	s.Head("graph", "system", "here", "target", "epochs, measured", "time s, measured", "cost $, measured", "value to Dorylus, measured",
		"time s, paper", "cost $, paper", "value to Dorylus, paper")
	for _, g := range b.raceGraphs() {
		all, err := b.raceSystems(ctx, g)
		if err != nil {
			return err
		}
		exact, err := b.trainForAccuracy(ctx, g, "gcn", pipe)
		if err != nil {
			return err
		}
		to := target(exact)
		if points, known := below[g.name]; known {
			mean, _ := trials.MeanStd(trials.Best(exact))
			to = mean - points
		}
		first, printed := unknown, unknown
		for k, r := range all {
			ours, epochs := unknown, trials.Reaching(r.list, to)
			if r.run != nil {
				ours = b.localCost(r.timed, epochs)
			}
			p := printed5(g.name, r.name)
			if k == 0 {
				first, printed = ours, p
			}
			s.Row(g.name, r.name+notRun(r.why), r.here, trials.Number(to, 2), trials.Number(epochs, 0), trials.Number(ours.seconds, 2), number(ours.usd),
				number(ours.value()/first.value()), trials.Number(p.seconds, 2), number(p.usd), trials.Number(p.value()/printed.value(), 2))
		}
	}
	fmt.Fprintf(s, "measured dollars take this machine for %s\n", b.Instance)
	return b.reasons(s)
}

// printed5 returns a row of the paper's table 5.
func printed5(graph, system string) timeAndCost {
	for _, r := range table5 {
		if r.graph == graph && r.system == system && r.seconds > 0 {
			return r.timeAndCost
		}
	}
	return unknown
}
