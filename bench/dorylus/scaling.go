package dorylus

import (
	"context"
	"fmt"
	"math"

	"siafu/bench/trials"
	"siafu/ranks/simulate"
)

// printed8 has the numbers of figure 8 in §7.4: performance and value relative to Dorylus on 4
// servers; NaN if not given.
var printed8 = map[string]spentRatio{
	"4 Dorylus": {1, 1}, "16 Dorylus": {2.82, 2.68},
	"8 CPU only": {1.1, math.NaN()},
}

type spentRatio struct{ performance, value float64 }

// figure8 writes clusters of c5n.4xlarge by their size.
func (b *bench) figure8(ctx context.Context, s *trials.Sheet) error {
	g := b.sparse()
	m, err := b.modelOf(ctx, g, "gcn")
	if err != nil {
		return err
	}
	s.Head("servers", "mode", "s/epoch, modelled", "performance, modelled", "value, modelled", "s/epoch, simulated", "performance, simulated", "value, simulated",
		"performance, paper", "value, paper")
	var base, first timeAndCost
	for _, n := range []int{4, 8, 16, 32} {
		c := cluster{"c5n.4xlarge", n}
		for _, on := range backends {
			simulated, remote := unknown, on.name == functions.name
			each, err := m.spent(c, 1, on)
			if err != nil {
				return err
			}
			if on.name != gpuOnly.name {
				if simulated, err = b.simulate(ctx, g, c, remote); err != nil {
					return err
				}
			}
			if n == 4 && remote {
				base, first = each, simulated
			}
			if n == 4 && on.name == cpuOnly.name && math.IsNaN(base.seconds) { // functions were not measured
				base = each
			}
			p, known := printed8[fmt.Sprint(n, " ", on.name)]
			if !known {
				p = spentRatio{math.NaN(), math.NaN()}
			}
			mode := on.name
			if on.name == gpuOnly.name {
				mode += notRun("no cluster")
			}
			cells := append([]string{text(n), mode}, each.compareWith(base)...)
			s.Row(append(append(cells, simulated.compareWith(first)...), trials.Number(p.performance, 2), trials.Number(p.value, 2))...)
		}
	}
	fmt.Fprintf(s, "GCN on %s (%s), %d ranks recorded in step on CPUs; simulated: Dorylus in bounded asynchrony (s=0) with functions, CPU only in step; all to Dorylus on 4\n", g.name, g.kind(), b.Ranks)
	return b.reasons(s)
}

// compareWith returns an epoch's seconds, and its performance and value relative to base.
func (e timeAndCost) compareWith(base timeAndCost) []string {
	return []string{trials.Number(e.seconds, 4), trials.Number(base.seconds/e.seconds, 2), trials.Number(e.value()/base.value(), 2)}
}

// simulate simulates an epoch of a local run on a cluster, with the work and rows of the
// paper's graph, the paper's number of intervals, and two weight servers. With functions it
// uses bounded asynchrony (s=0), else synchronous training.
func (b *bench) simulate(ctx context.Context, g *graphOf, c cluster, remote bool) (timeAndCost, error) {
	t := trials.Trial{Data: g.Data, Ranks: b.Ranks, Record: true,
		Flags: b.flags("gcn", "--servers", "0", "--mode", "pipe", "--eval-every", "0", "--epochs", text(b.Timed), "--threads", "1")}
	r, _, err := b.runTrial(ctx, cpuOnly, t, b.archive.Runner)
	if err != nil || r == nil {
		return unknown, err
	}
	var o simulate.Options
	edges, _ := g.larger()
	folder := b.archive.Folder(t)
	args := []string{folder, "--trace", trials.Timeline(folder), "--cluster", c.instance + ":" + text(c.count), "--scale", fmt.Sprint(edges), "--servers", "2",
		"--intervals", text(functionsAtOne), "--latency", "50us", "--epochs", "3", "--ghost-power", fmt.Sprint(b.GhostPower)}
	if remote {
		args = append(args, "--tensor", "lambda", "--lambda-tariff", tariffOfPaper, "--mode", "async", "--staleness", "0")
	}
	if err = parse(&o, args...); err != nil {
		return unknown, err
	}
	seconds, usd, err := o.Epoch()
	return timeAndCost{seconds: seconds, usd: usd}, err
}
