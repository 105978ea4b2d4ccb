package ranks

import (
	"sort"

	"siafu/graph"
	"siafu/graph/mapped"
	"siafu/graph/shard"
	"siafu/kernels"
	"siafu/kernels/model"
)

// interval is a range of own vertices that goes through an epoch on its own,
// with the version of the weights that it took (Dorylus, OSDI'21, §4 and §5).
type interval struct {
	index, lo, hi int // own vertices [lo, hi)

	net   *model.Network // of these vertices
	epoch int            // that it is in, or has finished
	busy  bool           // it is in an epoch
	h     []float32      // what the last task made
}

func (i *interval) rows() int { return i.hi - i.lo }

// part is the interval's rows of a matrix of all own vertices.
func (i *interval) part(x []float32, width int) []float32 { return x[i.lo*width : i.hi*width] }

// intervalSize is the least number of vertices that are worth an interval of
// their own, and mostIntervals how many a rank has unless it is told.
const (
	intervalSize  = 2048
	mostIntervals = 8
)

// intervals is how many intervals n vertices are divided into.
func (c *Config) intervals(n int) int {
	if c.Intervals > 0 {
		return max(1, min(c.Intervals, n))
	}
	return max(1, min(mostIntervals, n/intervalSize))
}

// newIntervals divides the own vertices of a shard: equal numbers, neighbours
// in the shard's order, which has few edges between them.
func newIntervals(c Config, s model.Spec, sh *shard.Shard, ids []uint32, team *kernels.Team, a *mapped.Arena) []*interval {
	n, count := sh.NumOwn(), c.intervals(sh.NumOwn())
	var list []*interval
	for k := range count {
		i := &interval{index: k, lo: k * n / count, hi: (k + 1) * n / count}
		i.net = model.New(s, model.Input{
			Features: featureRows(sh.Features, i.lo, i.hi), IDs: sh.Own[i.lo:i.hi], LocalIDs: ids,
		}, team, a)
		list = append(list, i)
	}
	return list
}

// featureRows is the rows [lo, hi) of f.
func featureRows(f graph.Features, lo, hi int) graph.Features {
	cut := graph.Features{Rows: hi - lo, Dim: f.Dim}
	if f.Sparse != nil {
		cut.Sparse = &graph.SparseRows{Offsets: f.Sparse.Offsets[lo : hi+1], Cols: f.Sparse.Cols, Vals: f.Sparse.Vals}
	} else {
		cut.Dense = f.Dense[lo*f.Dim : hi*f.Dim]
	}
	return cut
}

// boundary is the part of the ascending list of own rows that an interval has.
func boundary(list []uint32, i *interval) (from, to int) {
	at := func(v int) int {
		return sort.Search(len(list), func(k int) bool { return int(list[k]) >= v })
	}
	return at(i.lo), at(i.hi)
}
