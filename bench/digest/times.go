package digest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"siafu/bench/trials"
)

// figure4 writes the seconds of an epoch, one column per system.
func (b *bench) figure4(ctx context.Context, t *trials.Sheet) error {
	columns := []string{"graph", "ranks"}
	for _, s := range b.systems {
		columns = append(columns, s.Name)
	}
	t.Head(columns...)
	for _, c := range b.cells(b.Models[:1]) {
		times, err := b.times(ctx, c, systemsOf(b.systems, c.model), b.rates[0])
		if err != nil {
			return err
		}
		fmt.Fprintf(t, "%s\t%d", c.graph.Name, c.ranks)
		for _, s := range b.systems {
			fmt.Fprintf(t, "\t%s", trials.Number(trials.PerEpoch(times[s.Name], trials.Seconds), 4))
		}
		fmt.Fprintln(t, "\t")
	}
	return nil
}

// figure5 writes the speed-up over exact training on one rank, by ranks.
func (b *bench) figure5(ctx context.Context, t *trials.Sheet) error {
	const most = 8
	t.Head("graph", "system", "1 rank, s/epoch", "2 ranks", "4 ranks", "8 ranks")
	for _, g := range b.graphs {
		alone, err := b.archive.Get(ctx, trials.Trial{Data: g.Data, Ranks: 1, Flags: b.flags(setting{g, b.Models[0], 1}, b.systems[1],
			"--epochs", strconv.Itoa(b.Timed), "--eval-every", "0", "--threads", "1")})
		if err != nil {
			return err
		}
		base := math.NaN()
		if alone != nil {
			base = trials.PerEpoch([]*trials.Result{alone}, trials.Seconds)
		}
		for _, s := range b.only("exact-wait", "exact", "DIGEST", "LLCG") {
			fmt.Fprintf(t, "%s\t%s\t%s", g.Name, s.Name, trials.Number(base, 4))
			for n := 2; n <= most; n *= 2 {
				times, err := b.times(ctx, setting{g, b.Models[0], n}, []System{s}, b.rates[0])
				if err != nil {
					return err
				}
				fmt.Fprintf(t, "\t%s", trials.Number(base/trials.PerEpoch(times[s.Name], trials.Seconds), 2))
			}
			fmt.Fprintln(t, "\t")
		}
	}
	return nil
}

// only returns the selected systems with these names.
func (b *bench) only(names ...string) []System {
	return slices.DeleteFunc(slices.Clone(b.systems), func(s System) bool { return !slices.Contains(names, s.Name) })
}

// figure6 writes DIGEST with periods.
func (b *bench) figure6(ctx context.Context, t *trials.Sheet) error {
	var list []System
	for _, n := range []int{1, 2, 5, 10, 20} {
		s := system(fmt.Sprintf("N = %d", n), fmt.Sprintf("--refresh every:%d", n), "")
		s.Period = n
		list = append(list, s)
	}
	return b.printTimes(ctx, t, list)
}

// printTimes compares systems with exact training, on all cells of the first network.
func (b *bench) printTimes(ctx context.Context, t *trials.Sheet, systems []System, more ...string) error {
	t.Head("graph", "ranks", "system", "validation F1", "s/epoch", "MB/epoch", "epochs to target", "seconds to target")
	for _, c := range b.cells(b.Models[:1]) {
		exact, err := b.accuracy(ctx, c, b.systems[0])
		if err != nil {
			return err
		}
		target := b.target(exact)
		times, err := b.times(ctx, c, systems, b.rates[0], more...)
		if err != nil {
			return err
		}
		for _, s := range systems {
			if s.Timely {
				s.Flags = append(slices.Clone(s.Flags), more...)
			}
			list, err := b.accuracy(ctx, c, s)
			if err != nil {
				return err
			}
			each := trials.PerEpoch(times[s.Name], trials.Seconds)
			epochs, until := reaching(list, s, target, each)
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n", c.graph.Name, c.ranks, s.Name, trials.PlusMinus(trials.Best(list)),
				trials.Number(each, 4), trials.Number(trials.PerEpoch(times[s.Name], trials.Sent)/1e6, 2), trials.Number(epochs, 0), trials.Number(until, 2))
		}
	}
	return nil
}

// stragglerFlags returns the flag of a rank that pauses before each of its gathers, for the
// longest epoch time of exact training over all graphs. The paper's straggler paused for 8 to
// 10 s.
func (b *bench) stragglerFlags(ctx context.Context) ([]string, error) {
	longest := 0.0
	for _, c := range b.cells(b.Models[:1]) {
		times, err := b.times(ctx, c, b.systems[:1], b.rates[0])
		if err != nil {
			return nil, err
		}
		if each := trials.PerEpoch(times[b.systems[0].Name], trials.Seconds); each > longest {
			longest = each
		}
	}
	wait := time.Duration(longest * float64(time.Second)).Round(time.Millisecond)
	return []string{"--delay", fmt.Sprintf("0:%v:1", wait)}, nil
}

// figure7 writes exact training, LLCG, DIGEST and DIGEST-A with a straggler.
func (b *bench) figure7(ctx context.Context, t *trials.Sheet) error {
	return b.straggling(ctx, t, "exact-wait", "LLCG", "DIGEST", "DIGEST-A")
}

// figure11 writes PipeGCN, GNNAutoScale, DIGEST and DIGEST-A with a straggler.
func (b *bench) figure11(ctx context.Context, t *trials.Sheet) error {
	return b.straggling(ctx, t, "PipeGCN", "GNNAutoScale", "DIGEST", "DIGEST-A")
}

func (b *bench) straggling(ctx context.Context, t *trials.Sheet, names ...string) error {
	delay, err := b.stragglerFlags(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(t, "straggler: %s\n", strings.Join(delay, " "))
	return b.printTimes(ctx, t, b.only(names...), delay...)
}

// links has, for every link, the seconds of each system to the target, and the fastest system
// that ends at most half a point below exact training.
func (b *bench) links(ctx context.Context, t *trials.Sheet) error {
	columns := []string{"graph", "ranks", "system", "validation F1"}
	for _, r := range b.Rates {
		columns = append(columns, "s to target, "+r)
	}
	t.Head(columns...)
	for _, c := range b.cells(b.Models[:1]) {
		fastest, least := make([]string, len(b.rates)), make([]float64, len(b.rates))
		target := math.NaN()
		for k, s := range systemsOf(b.systems, c.model) {
			list, err := b.accuracy(ctx, c, s)
			if err != nil {
				return err
			}
			if k == 0 {
				target = b.target(list)
			}
			fmt.Fprintf(t, "%s\t%d\t%s\t%s", c.graph.Name, c.ranks, s.Name, trials.PlusMinus(trials.Best(list)))
			for i, rate := range b.rates {
				until, err := b.secondsToTarget(ctx, c, s, list, rate, target)
				if err != nil {
					return err
				}
				if until > 0 && !math.IsInf(until, 1) && (fastest[i] == "" || until < least[i]) {
					fastest[i], least[i] = s.Name, until
				}
				fmt.Fprintf(t, "\t%s", trials.Number(until, 2))
			}
			fmt.Fprintln(t, "\t")
		}
		fmt.Fprintf(t, "%s\t%d\tfastest\t%s\t%s\t\n", c.graph.Name, c.ranks, trials.Number(target, 2), strings.Join(fastest, "\t"))
	}
	return nil
}

// secondsToTarget returns the seconds to a target over a link.
func (b *bench) secondsToTarget(ctx context.Context, c setting, s System, list []*trials.Result, rate, target float64) (float64, error) {
	times, err := b.times(ctx, c, []System{s}, rate)
	if err != nil {
		return 0, err
	}
	if s.Timely {
		list = times[s.Name]
	}
	_, until := reaching(list, s, target, trials.PerEpoch(times[s.Name], trials.Seconds))
	return until, nil
}
