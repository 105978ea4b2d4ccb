package dorylus

import (
	"context"
	"fmt"
	"math"

	"siafu/bench/simulate"
	"siafu/bench/trials"
)

// printed8 is what §7.4 says of figure 8: performance and value to those of Dorylus on 4
// servers; NaN where it gives no number.
var printed8 = map[string]spentRatio{
	"4 Dorylus": {1, 1}, "16 Dorylus": {2.82, 2.68},
	"8 CPU only": {1.1, math.NaN()},
}

type spentRatio struct{ performance, value float64 }

// figure8 has clusters of c5n.4xlarge by their size.
func (b *bench) figure8(ctx context.Context, s *trials.Sheet) error {
	g := b.sparse()
	m, ok, err := b.modelOf(ctx, g, "gcn")
	if err != nil {
		return err
	}
	s.Head("servers", "mode", "s/epoch, modelled", "performance, modelled", "value, modelled", "s/epoch, simulated", "performance, simulated",
		"performance, paper", "value, paper")
	var base spent
	first := math.NaN()
	for _, n := range []int{4, 8, 16, 32} {
		c := cluster{"c5n.4xlarge", n}
		for _, on := range backends {
			each, simulated := unknown, math.NaN()
			remote := on.name == functions.name
			if ok && on.name != gpuOnly.name && (!remote || m.Invocations > 0) {
				if each, err = m.spent(c, 1, remote); err != nil {
					return err
				}
			}
			if on.name == cpuOnly.name {
				if simulated, err = b.simulate(ctx, g, c); err != nil {
					return err
				}
			}
			if n == 4 && remote {
				base = each
			}
			if n == 4 && on.name == cpuOnly.name {
				first = simulated
				if math.IsNaN(base.seconds) { // nothing is known of functions
					base = each
				}
			}
			p, known := printed8[fmt.Sprint(n, " ", on.name)]
			if !known {
				p = spentRatio{math.NaN(), math.NaN()}
			}
			mode := on.name
			if on.name == gpuOnly.name {
				mode += notRun("no cluster")
			}
			s.Row(text(n), mode, trials.Number(each.seconds, 4), trials.Number(base.seconds/each.seconds, 2), trials.Number(each.value()/base.value(), 2),
				trials.Number(simulated, 4), trials.Number(first/simulated, 2), trials.Number(p.performance, 2), trials.Number(p.value, 2))
		}
	}
	fmt.Fprintf(s, "GCN on %s (%s), %d ranks recorded; simulated numbers are to those of 4 servers of CPUs, all others to Dorylus on 4\n", g.name, g.kind(), b.Ranks)
	return b.reasons(s)
}

// simulate is the seconds of an epoch of a run recorded here, on so many servers and the
// paper's graph. What was recorded is replayed on the smaller graph, a server being one
// worker, since the tasks of a small graph are too few to divide; its card has the share
// of one processor. All of that is as many times larger and faster: the ratio of edges by
// the server's processors, messages of weights included.
func (b *bench) simulate(ctx context.Context, g *graphOf, c cluster) (float64, error) {
	t := trials.Trial{Data: g.Data, Ranks: b.Ranks, Record: true,
		Flags: b.flags("gcn", "--servers", "0", "--mode", "pipe", "--eval-every", "0", "--epochs", text(b.Timed), "--threads", "1")}
	r, _, err := b.try(ctx, cpuOnly, t, b.archive.Runner)
	if err != nil || r == nil {
		return math.NaN(), err
	}
	var o simulate.Options
	on, folder := machines[c.instance], b.archive.Folder(t)
	err = parse(&o, folder, "--trace", trials.Timeline(folder), "--ranks", text(c.count), "--workers", "1",
		"--ghost-power", fmt.Sprint(b.GhostPower), "--rate", fmt.Sprintf("%.0fmbit", 1000*on.network/on.processors))
	if err != nil {
		return 0, err
	}
	small, err := o.Seconds()
	edges, _ := g.larger()
	return small * edges / on.processors, err
}
