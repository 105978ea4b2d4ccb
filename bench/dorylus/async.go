package dorylus

import (
	"context"
	"math"

	"siafu/bench/trials"
	"siafu/ranks/report/chart"
)

// figure5 writes the epochs that each mode needs to reach the accuracy of the pipe.
func (b *bench) figure5(ctx context.Context, s *trials.Sheet) error {
	s.Head("graph", "mode", "validation accuracy, measured", "target", "epochs to it, measured", "R, measured", "R, paper", "accuracy, paper")
	for _, g := range b.graphs {
		if g.known && g.accuracy == 0 && !b.isSelected("figure5") {
			continue // Friendster's labels are random in the paper
		}
		curves := &chart.Chart{Name: "figure5-" + g.name, Title: "Figure 5, " + g.name, X: "epoch", Y: "validation accuracy, %", Whole: true}
		base, to := math.NaN(), math.NaN()
		for k, w := range []order{pipe, async0, async1} {
			list, err := b.trainForAccuracy(ctx, g, "gcn", w)
			if err != nil {
				return err
			}
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
	return nil
}

// isSelected reports whether a part was named.
func (b *bench) isSelected(part string) bool {
	return len(b.Only) == 1 && b.Only[0] == part
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
func (b *bench) figure6(ctx context.Context, s *trials.Sheet) error {
	s.Head("graph", "tensor work", "pipe s/epoch, measured", "no-pipe to pipe, measured", "async (s=0) to pipe, measured", "async (s=1) to pipe, measured",
		"no-pipe to pipe, modelled", "no-pipe to pipe, paper", "async (s=0 and 1) to pipe, paper")
	for _, g := range b.graphs {
		m, err := b.modelOf(ctx, g, "gcn")
		if err != nil {
			return err
		}
		for _, on := range backends[:2] {
			cells, base, why := []string{}, math.NaN(), ""
			for k, w := range []order{pipe, nopipe, async0, async1} {
				t, err := b.time(ctx, g, "gcn", on, w)
				if err != nil {
					return err
				}
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
	return b.reasons(s)
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
