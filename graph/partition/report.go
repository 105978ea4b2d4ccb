package partition

import (
	"fmt"
	"strings"

	"siafu/graph"
	"siafu/graph/order"
	"siafu/graph/shard"
	"siafu/internal/table"
)

// predictedWidth is the hidden width that hiddenBytes assumes.
const predictedWidth = 128

// Report describes the cost of a partitioning. Edges are directed, as stored.
type Report struct {
	Method   string       `json:"method"`
	Order    order.Choice `json:"order"` // the vertex order of ranks, without the order itself
	Parts    int          `json:"parts"`
	Vertices int64        `json:"vertices"`
	Edges    int64        `json:"edges"`
	// CutEdges is the number of edges between vertices of different ranks. Cut is CutEdges divided
	// by Edges.
	CutEdges int64   `json:"cut_edges"`
	Cut      float64 `json:"cut"`
	// Ghosts is the sum over ranks. Replication is Ghosts divided by Vertices.
	Ghosts      int64   `json:"ghosts"`
	Replication float64 `json:"replication"`
	// PredictedBytes is the number of bytes that one hidden layer of 128 float32 sends in an epoch:
	// ghosts x 4 bytes x 128 x 2, for the forward and the backward pass.
	PredictedBytes int64        `json:"predicted_bytes"`
	Balance        Balance      `json:"balance"`
	Ranks          []RankReport `json:"ranks"`
}

// Balance contains, for each count, the maximum over ranks divided by the mean. 1 is perfect. A
// count that is 0 on all ranks has balance 1.
type Balance struct {
	Vertices float64 `json:"vertices"`
	Edges    float64 `json:"edges"`
	Train    float64 `json:"train"`
}

// RankReport has the counts of one rank.
type RankReport = shard.Counts

// add adds the counts of the next rank's shard to the report.
func (r *Report) add(s *shard.Shard) { r.append(CountShard(s)) }

func (r *Report) append(one RankReport) {
	r.Ranks = append(r.Ranks, one)
	r.Vertices += one.Vertices
	r.Edges += one.Edges
	r.CutEdges += one.Cut
	r.Ghosts += one.Ghosts
}

// CountShard returns the counts of a shard.
func CountShard(s *shard.Shard) RankReport {
	one := RankReport{
		Vertices: int64(s.NumOwn()), Edges: s.In.Offsets[s.NumOwn()],
		Ghosts: int64(s.NumGhosts()), SendRows: int64(len(s.SendRows)),
		TrainEdges: s.EdgesInto(graph.SplitTrain), SendTo: make([]int64, s.Parts),
	}
	for q := range one.SendTo {
		one.SendTo[q] = s.SendStart[q+1] - s.SendStart[q]
	}
	if f := s.Features.Sparse; f != nil {
		one.FeatureNNZ = f.Offsets[s.NumOwn()] - f.Offsets[0]
	}
	for v, mid := range s.InOwnEnd {
		cut := s.In.Offsets[v+1] - mid
		one.Cut += cut
		if s.Split[v] == graph.SplitTrain {
			one.Train++
			one.TrainCut += cut
		}
	}
	return one
}

// finish computes the values that need all ranks.
func (r *Report) finish() {
	r.Cut = ratio(r.CutEdges, r.Edges)
	r.Replication = ratio(r.Ghosts, r.Vertices)
	r.PredictedBytes = hiddenBytes(r.Ghosts)
	r.Balance = Balance{
		Vertices: r.balance(func(o RankReport) int64 { return o.Vertices }),
		Edges:    r.balance(func(o RankReport) int64 { return o.Edges }),
		Train:    r.balance(func(o RankReport) int64 { return o.Train }),
	}
}

// hiddenBytes returns the bytes that one hidden layer of 128 float32 sends in an epoch, if each
// pass sends the given number of rows.
func hiddenBytes(rows int64) int64 { return rows * 4 * predictedWidth * 2 }

// balance returns the maximum of count over ranks, divided by the mean.
func (r *Report) balance(count func(RankReport) int64) float64 {
	var largest, total int64
	for _, o := range r.Ranks {
		largest, total = max(largest, count(o)), total+count(o)
	}
	if total == 0 {
		return 1
	}
	return float64(largest) * float64(len(r.Ranks)) / float64(total)
}

// ratio returns a/b, or 0 if b is 0.
func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// String returns the totals, then a table with one line per rank.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d parts of %d vertices and %d edges\n", r.Method, r.Parts, r.Vertices, r.Edges)
	fmt.Fprintf(&b, "edge cut %.1f%% (%d edges), %d ghosts (%.2f a vertex)\n", 100*r.Cut, r.CutEdges, r.Ghosts, r.Replication)
	fmt.Fprintf(&b, "balance (largest/mean): vertices %.3f, edges %.3f, train %.3f\n",
		r.Balance.Vertices, r.Balance.Edges, r.Balance.Train)
	fmt.Fprintf(&b, "a hidden layer of %d sends %.3g MB per epoch (ghosts x 4 bytes x %d, forward and backward)\n",
		predictedWidth, float64(r.PredictedBytes)/1e6, predictedWidth)
	fmt.Fprintf(&b,
		"vertex order %s, computed in %.2f s: estimated cache misses of a gather %.1f%% of edges, in the dataset's order %.1f%%\n",
		r.Order.Name, r.Order.Seconds, 100*r.Order.Misses, 100*r.Order.NaturalMisses)
	t := table.Right("rank", "vertices", "edges", "cut", "ghosts", "train", "send rows")
	for rank, o := range r.Ranks {
		t.Add(rank, o.Vertices, o.Edges, o.Cut, o.Ghosts, o.Train, o.SendRows)
	}
	t.Text(&b)
	return b.String()
}
