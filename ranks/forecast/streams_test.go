package forecast

import (
	"slices"
	"testing"

	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/kernels/model"
)

// The bytes that a GCN of two layers with cached ÂX reads, by hand: edges once for the gather of the
// forward pass and of the backward pass, ÂX for the first layer and the gradient of its weights, and a
// label and a split for each vertex.
func TestFiles(t *testing.T) {
	const n, edges, dim = 100_000, 3_000_000, 8
	p := partition.RankReport{Vertices: n, Edges: edges, Train: n, TrainEdges: edges, SendTo: []int64{0}}
	of := func(limit int64) Files {
		r := run(t, 2, 1, 0, "none")
		r.Config.Scratch, r.Config.Memory, r.Config.Epochs, r.Config.EvalEvery, r.Config.Mode, r.Config.Tensor = t.TempDir(),
			"1MB", 10, 0, "pipe", "cpu"
		r.Net.Dropout, r.Net.Streams, r.Net.CacheInput = 0.5, true, true
		r.Net.Orders = []model.Order{model.GatherFirst, model.GatherFirst}
		r.Vertices, r.Edges, r.Whole, r.Limit = n, edges, true, limit
		f := New(r)
		return f.Files(f.GraphRank(0, p), p, 50e6)
	}
	const (
		e = 8*(n+1) + 4*edges
		x = 4 * n * dim
		l = 5 * n
	)
	near := func(what string, got, want int64) {
		if d := got - want; d < -200 || d > 200 { // arrays are rounded up to 64 bytes
			t.Errorf("%s: %d bytes, want %d", what, got, want)
		}
	}
	f := of(1)
	near("an epoch", f.Epoch.Read, 2*e+2*x+l+3*4*n) // three sequences of tasks read ids for dropout
	near("an evaluation", f.Evaluation.Read, e+x+l)
	near("the start", f.Start.Read, 50e6+2*e+x) // rows of edges are checked after the checksums
	near("the run", f.Run.Read, f.Start.Read+10*f.Epoch.Read+2*f.Evaluation.Read)
	near("written", f.Run.Written, x+4*n)
	if k := slices.IndexFunc(f.Streams, func(s Stream) bool { return s.Name == shard.EdgeArrays }); k < 0 ||
		f.Streams[k].Home != InDataset {
		t.Errorf("%+v", f.Streams)
	}
	if f := of(1 << 30); f.Epoch.Read != 0 || f.Start.Read != 50e6 || f.Run.Read != 50e6 {
		t.Errorf("with memory for all pages: %+v", f)
	}
}
