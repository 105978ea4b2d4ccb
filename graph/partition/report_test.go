package partition

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"siafu/graph"
)

// checkReport compares a report with a naive count.
func checkReport(t *testing.T, ds *graph.Dataset, owner []uint32, parts int, r *Report) {
	t.Helper()
	vertices, edges, cut := loads(ds, owner, parts)
	want := make([]RankReport, parts)
	for p := range want {
		want[p] = RankReport{Vertices: int64(vertices[p]), Edges: int64(edges[p]), Cut: r.Ranks[p].Cut, SendTo: make([]int64, parts)}
	}
	held := map[[2]uint32]bool{}
	for v, p := range owner {
		if ds.Split[v] == graph.SplitTrain {
			want[p].Train++
			want[p].TrainEdges += int64(len(ds.In.Row(v)))
		}
		if f := ds.Features.Sparse; f != nil {
			want[p].FeatureNNZ += f.Offsets[v+1] - f.Offsets[v]
		}
		for _, u := range ds.In.Row(v) {
			if owner[u] != p && ds.Split[v] == graph.SplitTrain {
				want[p].TrainCut++
			}
			if key := [2]uint32{p, u}; owner[u] != p && !held[key] {
				held[key] = true
				want[p].Ghosts++
				want[owner[u]].SendRows++
				want[owner[u]].SendTo[p]++
			}
		}
	}
	if diff := gocmp.Diff(want, r.Ranks); diff != "" {
		t.Errorf("ranks (-want +got):\n%s", diff)
	}
	counted := Count(ds, owner, Options{Method: r.Method, Parts: parts})
	counted.Order = r.Order
	if diff := gocmp.Diff(r, counted); diff != "" {
		t.Errorf("counting without cutting (-built +counted):\n%s", diff)
	}
	n := ds.Meta.Vertices
	if r.Cut != cut || r.Ghosts != int64(len(held)) || r.Replication != float64(len(held))/float64(n) ||
		r.PredictedBytes != int64(len(held))*1024 || r.Balance.Vertices != imbalance(vertices) || r.Balance.Edges != imbalance(edges) {
		t.Errorf("%+v; expected cut %v, %d ghosts, balance %v and %v", r, cut, len(held), imbalance(vertices), imbalance(edges))
	}
}

func TestReportTable(t *testing.T) {
	r := Report{Method: "hash", Parts: 2, Ranks: []RankReport{{Vertices: 1, Edges: 20}, {Vertices: 300, SendRows: 4}}}
	r.Vertices, r.Edges, r.CutEdges, r.Ghosts = 301, 20, 5, 7
	r.finish()
	text := r.String()
	for _, want := range []string{"hash, 2 parts of 301 vertices and 20 edges", "edge cut 25.0% (5 edges), 7 ghosts", "balance (largest/mean): vertices 1.993, edges 2.000, train 1.000"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if table := lines[len(lines)-3:]; len(table[0]) != len(table[1]) || len(table[1]) != len(table[2]) {
		t.Errorf("columns are not aligned:\n%s", text)
	}
}
