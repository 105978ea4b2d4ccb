package ranks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/internal/host"
	"siafu/internal/mapped"
	"siafu/internal/size"
	"siafu/kernels"
	"siafu/ranks/config"
	"siafu/ranks/engine"
	"siafu/ranks/forecast"
	"siafu/ranks/world"
)

// chooseGhosts resolves --recompute-ghosts=auto for graph ranks on several hosts: of the values of
// GhostChoices it takes the one with the shortest estimated epoch (forecast.ChooseGhosts), if its
// ghosts are counted and their inputs fit into memory. The estimate is that of package forecast, with
// measured links, tensor work and gathers. On one host, where rows are copied, model.Choose decides
// without measurement, as it does for GPUs. With stale rows all are received. The choice is recorded,
// because the last bits of the numbers depend on it: a resumed run continues with it. fits reports
// whether the ranks' own cached inputs fit into memory. Collective over the world.
func (r *joined) chooseGhosts(fits bool) error {
	if r.cfg.RecomputeGhosts != "auto" || !r.cfg.Exact() || r.cfg.Tensor == config.TensorCUDA {
		return nil
	}
	if r.earlier.Ghosts != "" {
		r.cfg.RecomputeGhosts = r.earlier.Ghosts
		return nil
	}
	if oneHost(r.world.Hosts()[:r.Graph]) {
		return r.receiveWithoutMemory(fits)
	}
	values := r.cfg.GhostChoices(r.net, r.meta, fits)
	if values == nil {
		return nil
	}
	seconds, err := r.measureGhosts(values, fits)
	if err != nil {
		return err
	}
	r.cfg.RecomputeGhosts = values[forecast.ChooseGhosts(values, seconds)]
	if r.reporter != nil {
		var words []string
		for k, s := range seconds {
			text := fmt.Sprintf("%.3gs", s)
			switch s {
			case tooLarge:
				text = "too-large"
			case notCounted:
				text = "not-counted"
			}
			words = append(words, values[k]+"="+text)
		}
		r.reporter.Note(fmt.Sprintf("recompute_ghosts %s choice=%s\n", strings.Join(words, " "), r.cfg.RecomputeGhosts))
	}
	return nil
}

// receiveWithoutMemory changes auto to none on one host, if auto computes rows of ghosts, the arrays
// for that do not fit into memory, and received rows need less. Collective over the world.
func (r *joined) receiveWithoutMemory(fits bool) error {
	net := r.net
	r.cfg.Orders(&net, r.meta, fits)
	if net.LocalLayers == 0 {
		return nil
	}
	var arrays [2]int64 // of this host's ranks, with computed and with received rows
	received := r.cfg
	received.RecomputeGhosts = "none"
	for k, c := range []Config{r.cfg, received} {
		f, _, err := forecast.Of(c, r.meta, r.Graph, r.Servers, fits)
		if err != nil {
			return err
		}
		if !r.isServer() {
			arrays[k] = size.Product(f.GraphRank(r.rank, r.counts()).Of(forecast.Array), r.ranksHere())
		}
	}
	keep := []int64{1}
	if arrays[0] > host.AvailableMemory() && arrays[1] < arrays[0] {
		keep[0] = 0
	}
	if err := world.MinInt64s(r.world, keep); err != nil || keep[0] == 1 {
		return err
	}
	r.cfg.RecomputeGhosts = "none"
	if r.reporter != nil {
		r.reporter.Note("recompute_ghosts choice=none (without memory for the ghosts' inputs)\n")
	}
	return nil
}

func oneHost(hosts []string) bool {
	return !slices.ContainsFunc(hosts, func(h string) bool { return h != hosts[0] })
}

// Seconds of values that are not chosen.
const (
	tooLarge   = math.MaxFloat64     // a rank has no memory for the ghosts' inputs
	notCounted = math.MaxFloat64 / 2 // the partitioning has no counts of the ghosts
)

// measureGhosts measures links, products and gathers, and returns the estimated seconds of an epoch
// without the exchange of weights, on the slowest rank, for each value of --recompute-ghosts. The first
// value may be chosen in any case. Collective over the world.
func (r *joined) measureGhosts(values []string, fits bool) ([]float64, error) {
	peers, err := r.world.Sub(r.graphRanks())
	if err != nil {
		return nil, err
	}
	seconds := make([]float64, len(values))
	if !r.isServer() {
		var table *world.Links
		if table, err = world.MeasureLinks(peers); err == nil {
			err = r.ghostCosts(values, fits, table, seconds)
		}
	}
	if err := agree(r.world, err); err != nil {
		return nil, err
	}
	return seconds, world.MaxFloat64s(r.world, seconds)
}

// ghostCosts sets the seconds of this rank for each value of --recompute-ghosts.
func (r *joined) ghostCosts(values []string, fits bool, t *world.Links, seconds []float64) (err error) {
	defer mapped.Catch(&err)
	counts, c := r.counts(), r.cfg
	var rates forecast.Rates
	for k := range seconds {
		c.RecomputeGhosts = values[k]
		f, _, err := forecast.Of(c, r.meta, r.Graph, r.Servers, fits)
		if err != nil {
			return err
		}
		if k == 0 {
			rates = r.ghostRates(f)
		}
		switch _, counted := f.Halo(counts); {
		case k > 0 && !counted && f.Net.LocalLayers > 1:
			seconds[k] = notCounted
		case k > 0 && !r.ghostsFit(f):
			seconds[k] = tooLarge
		default:
			travel := func(e forecast.Exchange) float64 { return r.receiveGhosts(e, t) }
			seconds[k] = f.Work([]partition.RankReport{counts}, rates, 1, travel).Seconds(c.Mode)
		}
	}
	return nil
}

// Sizes of the measured work. Ranks of a host measure at the same time, as they compute in an epoch.
const (
	ghostSampleRows  = 1 << 12
	ghostSampleBytes = 32 << 20
	ghostSampleEdges = 1 << 18
)

// ghostRates measures the work of a network and the codec with this rank's threads.
func (r *joined) ghostRates(f *forecast.Forecast) forecast.Rates {
	if r.rates != nil {
		return r.rates(f)
	}
	s, h := r.shard, forecast.Host{Team: kernels.NewTeam(r.threads), Sample: r.randomEdges(), Memory: 4 * ghostSampleBytes, Busy: true}
	defer h.Team.Close()
	h.Rows = min(s.NumOwn(), ghostSampleRows)
	h.Features, h.Labels, h.Split = s.Features, make([]int32, h.Rows), make([]uint8, h.Rows)
	rates := h.Rates(f)
	rates.Codec = h.Codec(r.codecs[0], f)
	return rates
}

// randomEdges returns rows with the degrees of own vertices that gather from random vertices of all own
// ones and counted ghosts.
func (r *joined) randomEdges() *forecast.Sample {
	s := &forecast.Sample{Graph: r.shard.NumOwn() + r.shard.NumGhosts(), Bytes: ghostSampleBytes, CSR: graph.CSR{Offsets: []int64{0}}}
	for _, h := range r.hops[min(1, len(r.hops)):] {
		s.Graph += int(h.Ghosts)
	}
	random := rand.New(rand.NewPCG(1, uint64(r.rank)))
	for v := 0; v < r.shard.NumOwn() && len(s.Cols) < ghostSampleEdges; v++ {
		for range r.shard.In.Row(v) {
			s.Cols = append(s.Cols, uint32(random.IntN(s.Graph)))
		}
		s.Offsets = append(s.Offsets, int64(len(s.Cols)))
	}
	return s
}

// receiveGhosts returns the seconds of this rank's part of an exchange over the measured links, without
// other work at the same time.
func (r *joined) receiveGhosts(e forecast.Exchange, t *world.Links) (seconds float64) {
	send, receive := r.shard.SendStart, r.shard.GhostStart
	for q := range t.Size {
		if q == r.rank {
			continue
		}
		rows := max(e.Sent(send[q+1]-send[q]), e.Sent(receive[q+1]-receive[q]))
		latency, rate := t.At(r.rank, q)
		bytes, _ := r.codecs[0].Size(int(rows), e.Width)
		seconds += latency + float64(bytes)/rate
	}
	return seconds
}

// ghostsFit reports whether the cached inputs of own vertices and ghosts, with the edges into ghosts,
// fit into half of this host's free memory, and all arrays into the whole.
func (r *joined) ghostsFit(f *forecast.Forecast) bool {
	inputs, m := int64(0), f.GraphRank(r.rank, r.counts())
	for _, t := range m {
		if slices.Contains([]string{engine.CachedInput, engine.GhostFeatures, engine.GhostInput, engine.GhostEdges}, t.Name) {
			inputs = size.Sum(inputs, t.Bytes)
		}
	}
	return r.fitsHost(inputs) && size.Product(m.Of(forecast.Array), r.ranksHere()) <= host.AvailableMemory()
}
