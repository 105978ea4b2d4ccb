package digest

import (
	"context"
	"fmt"
	"math"

	"siafu/bench/trials"
	"siafu/ranks/runfolder"
)

// table4 writes the peak memory of the largest rank, and of its arrays.
func (b *bench) table4(ctx context.Context, t *trials.Sheet) error {
	t.Head("graph", "ranks", "system", "peak MB of a rank", "to exact-wait", "arrays MB")
	for _, c := range b.cells(b.Models[:1]) {
		times, err := b.times(ctx, c, systemsOf(b.systems, c.model), b.rates[0])
		if err != nil {
			return err
		}
		base := math.NaN()
		for k, s := range systemsOf(b.systems, c.model) {
			peak, arrays := memory(times[s.Name])
			if k == 0 {
				base = peak
			}
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t\n", c.graph.Name, c.ranks, s.Name, trials.Number(peak/1e6, 1), trials.Number(peak/base, 2), trials.Number(arrays/1e6, 1))
		}
	}
	return nil
}

// memory returns the peak bytes of the largest graph rank, resident and in arrays.
func memory(turns []*trials.Result) (peak, arrays float64) {
	if len(turns) == 0 {
		return math.NaN(), math.NaN()
	}
	for _, r := range graphRanks(turns[0]) {
		peak, arrays = max(peak, float64(r.PeakRSSBytes)), max(arrays, float64(r.ArrayBytes))
	}
	return peak, arrays
}

func graphRanks(r *trials.Result) []runfolder.RankReport {
	var list []runfolder.RankReport
	for _, each := range r.Summary.PerRank {
		if each.Role == "graph" {
			list = append(list, each)
		}
	}
	return list
}

// figure9 writes the ratio of ghosts to own vertices.
func (b *bench) figure9(ctx context.Context, t *trials.Sheet) error {
	t.Head("graph", "ranks", "partitioner", "ghosts", "own vertices", "ratio")
	for _, c := range b.cells(b.Models[:1]) {
		times, err := b.times(ctx, c, b.systems[:1], b.rates[0])
		if err != nil {
			return err
		}
		ghosts, own := math.NaN(), math.NaN()
		for _, turn := range times[b.systems[0].Name] {
			ghosts, own = 0, 0
			for _, r := range graphRanks(turn) {
				ghosts, own = ghosts+float64(r.Ghosts), own+float64(r.Vertices)
			}
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s %%\t\n", c.graph.Name, c.ranks, b.Partitioner, trials.Number(ghosts, 0), trials.Number(own, 0), trials.Number(100*ghosts/own, 2))
	}
	return nil
}
