package ranks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"siafu/halo/codec"
	"siafu/internal/host"
	"siafu/internal/mapped"
	"siafu/internal/size"
	"siafu/kernels"
	"siafu/kernels/model"
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
	list, err := r.measureGhosts(values, fits)
	if err != nil {
		return err
	}
	best := list[forecast.ChooseGhosts(values, func(k int) float64 {
		if list[k].excluded != "" {
			return math.Inf(1)
		}
		return list[k].seconds
	})]
	r.cfg.RecomputeGhosts = best.ghosts
	if r.reporter != nil {
		var words []string
		for _, c := range list {
			if c.excluded != "" {
				words = append(words, c.ghosts+"="+c.excluded)
			} else {
				words = append(words, fmt.Sprintf("%s=%.3gs", c.ghosts, c.seconds))
			}
		}
		r.reporter.Note(fmt.Sprintf("recompute_ghosts %s choice=%s\n", strings.Join(words, " "), best.ghosts))
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

// ghostChoice is a value of --recompute-ghosts.
type ghostChoice struct {
	ghosts   string
	seconds  float64 // of an epoch, less what all choices have in common, on the slowest rank
	excluded string  // why it is not chosen, empty if it may be
}

// Why a number of layers is not chosen.
const (
	tooLarge   = "too-large"   // a rank has no memory for the ghosts' inputs
	notCounted = "not-counted" // the partitioning has no counts of the ghosts
)

// measureGhosts measures links, products and gathers, and estimates each value of
// --recompute-ghosts. The first one is never excluded. Collective over the world.
func (r *joined) measureGhosts(values []string, fits bool) ([]ghostChoice, error) {
	peers, err := r.world.Sub(r.graphRanks())
	if err != nil {
		return nil, err
	}
	n := len(values)
	worst := make([]float64, 3*n) // seconds, and 1 for choices that do not fit, and that are not counted
	if !r.isServer() {
		var table *world.Links
		if table, err = world.MeasureLinks(peers); err == nil {
			err = r.ghostCosts(values, fits, table, worst[:n], worst[n:2*n], worst[2*n:])
		}
	}
	if err := agree(r.world, err); err != nil {
		return nil, err
	}
	if err := world.MaxFloat64s(r.world, worst); err != nil {
		return nil, err
	}
	list := make([]ghostChoice, n)
	for k := range list {
		list[k] = ghostChoice{ghosts: values[k], seconds: worst[k]}
		switch {
		case k == 0:
		case worst[2*n+k] > 0:
			list[k].excluded = notCounted
		case worst[n+k] > 0:
			list[k].excluded = tooLarge
		}
	}
	return list, nil
}

// ghostCosts sets the seconds of this rank for each value of --recompute-ghosts, and 1 for values
// that do not fit into memory, or whose ghosts are not counted.
func (r *joined) ghostCosts(values []string, fits bool, t *world.Links, seconds, large, unknown []float64) (err error) {
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
		if _, counted := f.Halo(counts); !counted && f.Net.LocalLayers > 1 {
			unknown[k] = 1
			continue
		}
		if k > 0 && !r.ghostsFit(f) {
			large[k] = 1
		}
		seconds[k] = f.GhostSeconds(counts, rates, func(e forecast.Exchange) float64 { return r.receiveGhosts(e, t) }, c.Mode != "nopipe")
	}
	return nil
}

// Sizes of the measured product, gather and rows, and the least time of a measurement. Ranks of a
// host measure at the same time, as they compute in an epoch.
const (
	ghostSampleTime  = 20 * time.Millisecond
	ghostSample      = 1 << 12 // rows at most
	ghostSampleBytes = 32 << 20
	ghostSampleEdges = 1 << 18
	ghostCodedRows   = 512
)

// ghostRates measures the tensor work of some vertices, a gather and the codec with this rank's
// threads, and extrapolates to all layers.
func (r *joined) ghostRates(f *forecast.Forecast) forecast.Rates {
	if r.rates != nil {
		return r.rates(f)
	}
	team := kernels.NewTeam(r.threads)
	defer team.Close()
	rates := forecast.Rates{Edge: map[int]float64{}, Backward: map[int]float64{}}
	rates.Row = r.rowSeconds(team, f.Net)
	width := 1
	for _, g := range f.Gathers() {
		width = max(width, g.Width)
	}
	width = min(width, 256)
	each := r.gatherSeconds(team, width)
	for l, g := range f.Gathers() {
		rates.Edge[l] = each * float64(g.Width)
		rates.Backward[l] = rates.Edge[l]
	}
	x := make([]float32, ghostCodedRows*width)
	for i := range x {
		x[i] = float32(i % 7)
	}
	rates.Codec = codec.Measure(team, r.codecs[0], codec.Rows{X: x, Cols: width, Len: ghostCodedRows}, false)
	return rates
}

// rowSeconds returns the seconds of an epoch's tensor work per vertex. It measures some own vertices.
func (r *joined) rowSeconds(team *kernels.Team, net model.Spec) float64 {
	s, a := r.shard, mapped.NewArena()
	defer a.Free()
	n := min(s.NumOwn(), max(ghostSampleBytes/4/max(slices.Max(net.Dims), 1), 1), ghostSample)
	if n == 0 {
		return 0
	}
	return meanOf(forecast.Rehearsal(net, s.Features, make([]int32, n), make([]uint8, n), n, team, a)) / float64(n)
}

// gatherSeconds returns the seconds per edge and column of a gather. It measures rows with the
// degrees of own vertices that gather from random rows, as many as the rank has with all counted
// ghosts, up to ghostSampleBytes.
func (r *joined) gatherSeconds(team *kernels.Team, width int) float64 {
	s, a := r.shard, mapped.NewArena()
	defer a.Free()
	all := s.NumOwn() + s.NumGhosts()
	for _, h := range r.hops[min(1, len(r.hops)):] {
		all += int(h.Ghosts)
	}
	rows := max(min(all, ghostSampleBytes/4/width), 1)
	begin, cols, random := []int64{0}, []uint32(nil), rand.New(rand.NewPCG(1, uint64(r.rank)))
	for v := 0; v < min(s.NumOwn(), rows) && len(cols) < ghostSampleEdges; v++ {
		for range s.In.Row(v) {
			cols = append(cols, uint32(random.IntN(rows)))
		}
		begin = append(begin, int64(len(cols)))
	}
	n := len(begin) - 1
	if n == 0 {
		return 0
	}
	x, dst := kernels.NewMat(team, a, rows, width), kernels.NewMat(team, a, n, width)
	g := kernels.Gather{Begin: begin[:n], End: begin[1:], Cols: cols, SelfLoops: true}
	return meanOf(func() { team.SpMM(dst, g.Edges(), x, false) }) / float64(len(cols)+n) / float64(width)
}

// meanOf returns the mean seconds of several calls after a first one: the median of three
// measurements.
func meanOf(call func()) float64 {
	call()
	var means [3]float64
	for k := range means {
		calls, began := 0, time.Now()
		for calls < 3 || time.Since(began) < ghostSampleTime {
			call()
			calls++
		}
		means[k] = time.Since(began).Seconds() / float64(calls)
	}
	slices.Sort(means[:])
	return means[1]
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
