package ranks

import (
	"fmt"
	"math"
	"slices"
	"time"

	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/forecast"
	"siafu/ranks/world"
	"siafu/ranks/world/link"
)

// chooseGhosts resolves --recompute-ghosts=auto for graph ranks on several hosts: a rank
// computes its ghosts' rows if that takes less time than their exchange over the measured
// links, and if their inputs fit into memory. On one host, where rows are copied, model.Choose
// decides without measurement, as it does for GPUs. With stale rows all are received. The choice is recorded, because the last bits of the numbers
// depend on it: a resumed run continues with it. fits reports whether the ranks' own cached
// inputs fit into memory. Collective over the world.
func (r *joined) chooseGhosts(fits bool) error {
	if r.cfg.RecomputeGhosts != "auto" || !r.cfg.Exact() || r.cfg.Tensor == config.TensorCUDA {
		return nil
	}
	past, err := world.BcastBlob(r.world, []byte(r.pastGhosts()), 0)
	if err != nil {
		return err
	}
	if len(past) > 0 {
		r.cfg.RecomputeGhosts = string(past)
		return nil
	}
	net, c := r.net, r.cfg
	c.Orders(&net, r.meta, fits)
	if net.LocalLayers > 0 || oneHost(r.world.Hosts()[:r.Graph]) {
		return nil
	}
	c.RecomputeGhosts = "layers:1"
	if c.Orders(&net, r.meta, fits); net.LocalLayers == 0 {
		return nil
	}
	g, err := r.measureGhosts(net)
	if err != nil {
		return err
	}
	r.cfg.RecomputeGhosts = "none"
	if g.fit && g.compute < g.receive {
		r.cfg.RecomputeGhosts = "layers:1"
	}
	if r.reporter != nil {
		why := ""
		if !g.fit {
			why = " (their inputs do not fit into memory)"
		}
		r.reporter.Note(fmt.Sprintf("recompute_ghosts compute_seconds=%.3g exchange_seconds=%.3g choice=%s%s\n", g.compute, g.receive, r.cfg.RecomputeGhosts, why))
	}
	return nil
}

// pastGhosts returns the choice of the run that rank 0 resumes, empty in a new run.
func (r *joined) pastGhosts() string {
	switch {
	case r.state == nil:
		return ""
	case r.state.Ghosts == "":
		return "auto"
	}
	return r.state.Ghosts
}

func oneHost(hosts []string) bool {
	return !slices.ContainsFunc(hosts, func(h string) bool { return h != hosts[0] })
}

// ghostCosts are the costs of an epoch for the ghosts' rows of a layer, on the slowest rank.
type ghostCosts struct {
	compute, receive float64 // seconds
	fit              bool    // the inputs of the computation fit into every rank's memory
}

// measureGhosts measures links and products. Collective over the world.
func (r *joined) measureGhosts(net model.Spec) (g ghostCosts, err error) {
	peers, err := r.world.Sub(r.graphRanks())
	if err != nil {
		return g, err
	}
	worst := make([]float64, 3) // seconds, seconds, and 1 if the inputs do not fit
	if !r.isServer() {
		table, err := link.Measure(peers)
		if err != nil {
			return g, err
		}
		worst = []float64{r.computeGhosts(net), r.receiveGhosts(net, table), 0}
		if !r.ghostsFit(net) {
			worst[2] = 1
		}
	}
	err = world.MaxFloat64s(r.world, worst)
	return ghostCosts{worst[0], worst[1], worst[2] == 0}, err
}

// ghostSample is the maximal number of rows of a measured product.
const ghostSample = 1 << 14

// sparseRate is the number of multiply-adds of a dense product in the time of one non-zero of a
// sparse one.
const sparseRate = 4

// computeGhosts returns the seconds of an epoch's products for this rank's ghosts: forward, and
// backward for the weights and the input. It measures the first product, and extrapolates.
func (r *joined) computeGhosts(net model.Spec) float64 {
	n, in, out := r.shard.NumGhosts(), net.Dims[0], net.Dims[1]
	if n == 0 {
		return 0
	}
	work, at := 0., net.GhostLayer()
	for _, p := range net.Params() {
		if p.Layer < at || p.Layer == at && net.Orders[at] == model.ApplyFirst {
			work += float64(p.Rows) * float64(p.Cols)
		}
	}
	if r.meta.FeatureKind == "sparse" && !net.CacheInput {
		work -= float64(in*out) * max(0, 1-sparseRate*float64(r.meta.FeatureNNZ)/float64(r.meta.Vertices)/float64(in))
	}
	team := kernels.NewTeam(r.threads)
	defer team.Close()
	a := mapped.NewArena()
	defer a.Free()
	rows := min(n, ghostSample)
	x, y, w := kernels.NewMat(team, a, rows, in), kernels.NewMat(team, a, rows, out), kernels.NewMat(team, a, in, out)
	least := math.Inf(1)
	for range 3 {
		began := time.Now()
		team.MatMul(y, x, w, false)
		team.MatMulTransA(w, x, y, false)
		team.MatMulTransB(x, y, w, false)
		least = min(least, time.Since(began).Seconds())
	}
	return least * float64(n) / float64(rows) * work / float64(in*out)
}

// receiveGhosts returns the seconds of the forward and backward exchange of the rows of
// GhostLayer over the measured links, without other work at the same time.
func (r *joined) receiveGhosts(net model.Spec, t *link.Table) (seconds float64) {
	width := model.New(net, r.meta.FeatureKind == "sparse").Gathering(net.GhostLayer()).Width
	send, receive := r.shard.SendStart, r.shard.GhostStart
	for q := range t.Size {
		if q == r.rank {
			continue
		}
		rows := max(send[q+1]-send[q], receive[q+1]-receive[q])
		latency, rate := t.At(r.rank, q)
		bytes, _ := r.codecs[0].Size(int(rows), width)
		seconds += 2 * (latency + float64(bytes)/rate)
	}
	return seconds
}

// ghostsFit reports whether the cached inputs of own vertices and ghosts fit into memory.
func (r *joined) ghostsFit(net model.Spec) bool {
	n := int64(r.shard.NumOwn() + r.shard.NumGhosts())
	return r.fitsHost(forecast.CachedInputBytes(r.cfg, net, n, int64(r.shard.NumGhosts())))
}
