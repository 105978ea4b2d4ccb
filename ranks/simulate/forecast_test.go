package simulate

import (
	"math"
	"testing"

	"siafu/graph/partition"
	"siafu/halo/codec"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/engine"
	"siafu/ranks/forecast"
	"siafu/ranks/schedule"
)

// planned returns a graph evenly partitioned over ranks: 400,000 vertices, 8 M edges, and
// ghosts proportional to 1/√ranks.
func planned(ranks int) []partition.RankReport {
	n := int64(ranks)
	one := partition.RankReport{Vertices: 400_000 / n, Edges: 8_000_000 / n, Train: 200_000 / n, TrainEdges: 8_000_000 / n}
	list := make([]partition.RankReport, ranks)
	for r := range list {
		list[r] = one
		list[r].SendTo = make([]int64, ranks)
		if ranks == 1 {
			continue
		}
		list[r].Cut = one.Edges / 3
		each := int64(60_000/math.Sqrt(float64(ranks))) / (n - 1)
		list[r].Ghosts, list[r].SendRows = each*(n-1), each*(n-1)
		for q := range ranks {
			if q != r {
				list[r].SendTo[q] = each
			}
		}
	}
	return list
}

// rates are those of a host: an epoch of the whole graph takes one 0.4 s of tensor work
// and 0.08 s of each gather.
var rates = forecast.Rates{Row: 1e-6, Edge: map[int]float64{1: 1e-8}, Backward: map[int]float64{1: 1e-8}}

// simulated returns ranks with task times from the rates.
func simulated(parts []partition.RankReport, width, weights int, l Link) *Cluster {
	c := &Cluster{Workers: 1, Link: l, Bytes: []float64{0, float64(4 * width)}, Weights: float64(4 * weights), Staleness: -1}
	_, c.Rows = ofReport(&partition.Report{Ranks: parts})
	for _, p := range parts {
		k := &Rank{Workers: 1, Outline: engine.Outline{
			Layers: []engine.LayerOutline{{}, {Gathers: true, GathersBackward: true}}, Intervals: 8, Loss: true, InputCached: true,
			GhostOutline: engine.GhostOutline{Ghosts: len(parts) > 1, Returns: len(parts) > 1, Pieces: 1},
		}}
		tensors := 0
		for _, t := range k.tracks()[0].Tasks() {
			if engine.Tensor(t.Stage) {
				tensors++
			}
		}
		own, cut := float64(p.Edges-p.Cut+p.Vertices), float64(p.Cut)
		var e Epoch
		for _, t := range k.tracks()[0].Tasks() {
			takes := 0.0
			switch {
			case engine.Tensor(t.Stage):
				takes = rates.Row * float64(p.Vertices) / float64(tensors)
			case t.Stage == schedule.GatherOwn, t.Stage == schedule.GatherBackward:
				takes = rates.Edge[1] * own / float64(k.Outline.Intervals)
			case t.Stage == schedule.GatherGhosts:
				takes = rates.Edge[1] * cut / float64(k.Outline.Intervals)
			case t.Stage == schedule.GhostGrads:
				takes = rates.Edge[1] * cut
			}
			e.Tasks = append(e.Tasks, Work{Serial: takes})
		}
		k.Epochs = []Epoch{e}
		c.Ranks = append(c.Ranks, k)
	}
	return c
}

// tenth is the relative difference below which "siafu plan" considers two choices equal.
const tenth = 0.1

// "siafu plan" uses a forecast. With the same task times, the simulator agrees with it: on the
// seconds of an epoch by number of ranks and link, and on the fastest number of ranks.
func TestForecastAgrees(t *testing.T) {
	net := model.Spec{Kind: "gcn", Dims: []int{100, 64, 16}}
	net.Choose(model.Load{CacheFits: true}, model.Choices{Order: "auto", CacheInput: "auto"})
	plain, err := codec.ByName("none")
	if err != nil {
		t.Fatal(err)
	}
	counts := []int{1, 2, 4, 8, 16}
	for _, gbit := range []float64{10, 1, 0.2, 0.05} {
		var estimated, modelled []float64
		for _, ranks := range counts {
			parts := planned(ranks)
			f := forecast.New(forecast.Run{Config: config.Config{RankOptions: config.RankOptions{Intervals: 8}}, Net: net, Graph: ranks,
				Codecs: []codec.Codec{plain}, Slots: 2})
			link := forecast.Link{Bandwidth: gbit * 1e9 / 8, Latency: 50e-6, RanksPerHost: 1, Copy: 1e10}
			estimated = append(estimated, f.Epoch(parts, rates, link).Overlapping)
			c := simulated(parts, f.Exchanges()[0].Width, net.NumWeights(), Link{link.Bandwidth * forecast.PayloadShare, link.Latency})
			modelled = append(modelled, c.Run(3).Epoch)
		}
		for k, ranks := range counts {
			if ratio := modelled[k] / estimated[k]; math.Abs(ratio-1) > tenth {
				t.Errorf("%g Gbit/s, %d ranks: %g s are simulated, %g estimated", gbit, ranks, modelled[k], estimated[k])
			}
			for other := range counts {
				if estimated[k] < (1-tenth)*estimated[other] && modelled[k] >= modelled[other] {
					t.Errorf("%g Gbit/s: %d ranks are faster than %d in the forecast, and not in the simulation",
						gbit, ranks, counts[other])
				}
			}
		}
	}
}
