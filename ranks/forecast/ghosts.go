package forecast

import (
	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/internal/size"
	"siafu/kernels/model"
)

// A rank that computes its ghosts' rows (model.Spec.LocalLayers) has, in addition to its own work,
// the products of ghosts, and gathers along edges into ghosts. It exchanges no rows of these layers.
// Its ghosts are those of LocalLayers hops. The number of hops whose rows a layer needs decreases
// by one with each layer that gathers.

// computesGhosts reports whether the rows of all ghosts of layer l are computed, not received.
func (f *Forecast) computesGhosts(l int) bool {
	return l <= f.Net.GhostLayer() && f.computedShare(l) == 0
}

// computedShare returns the fraction of the ghosts of layer l whose rows are computed while the others
// are received; 0 if all are computed or received.
func (f *Forecast) computedShare(l int) float64 {
	if l == f.Net.GhostLayer() {
		return f.Net.LocalShare
	}
	return 0
}

// Halo returns the hops of ghosts whose rows a rank computes. exact is false if they are estimated.
func (f *Forecast) Halo(p partition.RankReport) (hops []shard.Hop, exact bool) {
	if f.Graph == 1 {
		return make([]shard.Hop, f.Net.LocalLayers), true
	}
	return p.Halo(f.Net.LocalLayers, f.Net.LocalShare, f.Vertices)
}

// CountsGhosts reports whether the partition has counts of all ghosts whose rows are computed.
// Otherwise the estimates of their memory and work are not exact.
func (f *Forecast) CountsGhosts(parts []partition.RankReport) bool {
	for _, p := range parts {
		if _, exact := f.Halo(p); f.Net.LocalLayers > 1 && !exact {
			return false
		}
	}
	return true
}

// sparseRate is the number of multiply-adds of a dense product in the time of one non-zero of a
// sparse one.
const sparseRate = 4

// multiplyAdds returns the multiply-adds of a weight's product for a vertex, forward.
func (f *Forecast) multiplyAdds(w model.Param, p partition.RankReport) float64 {
	rows := float64(w.Rows)
	if w.Features && f.Sparse && !f.Net.CacheInput {
		rows = min(rows, sparseRate*float64(p.FeatureNNZ)/float64(max(p.Vertices, 1)))
	}
	return rows * float64(w.Cols)
}

// MultiplyAdds returns the multiply-adds of a vertex's products in a forward pass. Those of sparse
// features count as the dense ones that take as long.
func (f *Forecast) MultiplyAdds(p partition.RankReport) (sum float64) {
	for _, w := range f.Net.Params() {
		sum += f.multiplyAdds(w, p)
	}
	return sum
}

// ghostRows returns the tensor work for ghosts whose rows are computed, as a number of vertices of
// the whole network.
func (f *Forecast) ghostRows(p partition.RankReport) (rows float64) {
	for level := range f.Net.LocalLayers {
		rows += f.levelRows(p, level)
	}
	return rows
}

// levelRows returns the same for the products after the given number of gathers.
func (f *Forecast) levelRows(p partition.RankReport, level int) (rows float64) {
	hops, _ := f.Halo(p)
	gathers, sum := f.Net.GatherLayers(), 0.
	for _, w := range f.Net.Params() {
		before := 0
		for _, l := range gathers {
			if l < w.Layer || l == w.Layer && f.Net.Orders[l] == model.GatherFirst {
				before++
			}
		}
		if before == level && !(w.Name == "target.weight" && w.Layer == f.Net.GhostLayer()) { // ghosts of the last layer attend nowhere
			sum += f.multiplyAdds(w, p) * float64(ghosts(hops, len(hops)-level))
		}
	}
	return sum / max(f.MultiplyAdds(p), 1)
}

// ghosts returns the number of vertices of the first n hops.
func ghosts(hops []shard.Hop, n int) (sum int64) {
	for _, h := range hops[:max(n, 0)] {
		sum += h.Ghosts
	}
	return sum
}

// ghostEdges returns the number of edges into ghosts along which layer l gathers, self loops
// included.
func (f *Forecast) ghostEdges(l int, p partition.RankReport) (edges float64) {
	hops, _ := f.Halo(p)
	for at, layer := range f.Net.GatherLayers() {
		if layer != l {
			continue
		}
		for _, h := range hops[:max(len(hops)-1-at, 0)] {
			edges += float64(h.Edges + h.Ghosts)
		}
	}
	return edges
}

// computed returns the gathers of the layers whose ghosts' rows are computed, forward and backward.
func (f *Forecast) computed() (list []Exchange) {
	for l, g := range f.foot.Gathers {
		if g.Width > 0 && f.computesGhosts(l) {
			list = append(list, Exchange{l, g.Width, false, 0})
		}
		if g.Backward && f.computesGhosts(l) {
			list = append(list, Exchange{l, g.Width, true, 0})
		}
	}
	return list
}

// edge returns the seconds per edge of a gather.
func (f *Forecast) edge(e Exchange, p partition.RankReport, r Rates) float64 {
	switch {
	case e.Backward:
		return r.Backward[e.Layer]
	case e.Layer == 0 && f.Net.Listed:
		return r.Edge[0] * min(f.Net.ListWidth(p.FeatureNNZ, p.Vertices)/float64(e.Width), 1)
	}
	return r.Edge[e.Layer]
}

// fractionGain is the time of a fraction of a layer over that of the best number of whole layers from
// which on it is chosen: a fraction also has an exchange, whose costs are not all estimated.
const fractionGain = 0.9

// ChooseGhosts returns the index of the value of --recompute-ghosts with the shortest epoch. Values that
// are excluded have the most seconds.
func ChooseGhosts(values []string, seconds []float64) (best int) {
	for _, whole := range []bool{true, false} {
		limit := seconds[best]
		if !whole {
			limit *= fractionGain
		}
		for k, v := range values {
			if _, share, _ := model.ParseLocal(v); (share == 0) == whole && seconds[k] < limit {
				best, limit = k, seconds[k]
			}
		}
	}
	return best
}

// waits is the time of ghosts' tasks in an epoch over that of their products and gathers alone: tasks
// wait for others, and rows leave the caches. Measured ratios with two to four layers are 1.3 to 1.7.
const waits = 1.5

// besides returns the seconds in which a rank computes the rows of some ghosts, or their gradients,
// while those of others travel: along the edges into them, and their products, of which a third is
// forward.
func (f *Forecast) besides(e Exchange, p partition.RankReport, r Rates) (seconds float64) {
	if e.Computed == 0 {
		return 0
	}
	last := f.Net.LocalLayers - 1
	part := 1. / 3
	if e.Backward {
		part = 2. / 3
	}
	seconds = part * r.Row * f.levelRows(p, last)
	if last > 0 {
		before := e
		before.Layer = f.Net.GatherLayers()[last-1]
		seconds += f.edge(before, p, r) * f.ghostEdges(before.Layer, p)
	}
	return seconds
}

// Fetched returns the bytes of all ghosts' inputs, and of edges into ghosts, that ranks send before
// the first epoch.
func (f *Forecast) Fetched(parts []partition.RankReport) (bytes int64) {
	if f.Net.LocalLayers == 0 || f.Graph == 1 {
		return 0
	}
	reads := model.New(f.Net, f.Sparse).ReadsFeatures()
	for _, p := range parts {
		hops, _ := f.Halo(p)
		for k, h := range hops {
			if f.Net.CacheInput {
				bytes = size.Sum(bytes, floats(h.Ghosts, int64(f.Net.Dims[0])))
			}
			switch {
			case reads && f.Sparse:
				bytes = size.Sum(bytes, floats(h.Ghosts), size.Product(8, h.FeatureNNZ))
			case reads && f.Half:
				bytes = size.Sum(bytes, size.Product(2, h.Ghosts, int64(f.Net.Dims[0])))
			case reads:
				bytes = size.Sum(bytes, floats(h.Ghosts, int64(f.Net.Dims[0])))
			}
			if len(hops) > 1 {
				bytes = size.Sum(bytes, size.Product(ghostBytes, h.Ghosts))
			}
			if k < len(hops)-1 {
				bytes = size.Sum(bytes, size.Product(ghostEdgeBytes, h.Edges))
			}
		}
	}
	return bytes
}

// Bytes of messages for a ghost of several hops (its id, its degrees, its row in a request) and for
// an edge into it (rank and row of its source).
const (
	ghostBytes     = 16
	ghostEdgeBytes = 8
)

// Memory to find the ghosts of several hops: bytes of a vertex and of an edge, as in a sample of a
// mini-batch.
const (
	foundBytes     = 64
	foundEdgeBytes = 16
)

// findGhosts appends the memory to find the ghosts of several hops.
func (f *Forecast) findGhosts(m *Memory, p partition.RankReport) {
	hops, _ := f.Halo(p)
	if len(hops) < 2 || f.Graph == 1 {
		return
	}
	var edges int64
	for _, h := range hops[:len(hops)-1] {
		edges = size.Sum(edges, h.Edges)
	}
	m.add("finding ghosts of several hops", Scratch, size.Product(foundBytes, size.Sum(p.Vertices, ghosts(hops, len(hops)))),
		size.Product(foundEdgeBytes, size.Sum(edges, p.Edges)))
}
