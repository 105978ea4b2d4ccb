package partition

import (
	"math"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"siafu/graph"
	"siafu/graph/shard"
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
	naiveHops(ds, owner, want)
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

// naiveHops sets the hops of ranks by their definition, with a map.
func naiveHops(ds *graph.Dataset, owner []uint32, ranks []RankReport) {
	if len(ranks) < 2 {
		return
	}
	for p := range ranks {
		ranks[p].Hops = make([]shard.Hop, shard.CountedHops)
	}
	for p := range ranks {
		hopOf, hop := map[uint32]int{}, []uint32(nil)
		for v, q := range owner {
			if int(q) == p {
				hopOf[uint32(v)] = -1
				hop = append(hop, uint32(v))
			}
		}
		for k := range ranks[p].Hops {
			var next []uint32
			for _, v := range hop {
				for _, u := range ds.In.Row(int(v)) {
					if _, known := hopOf[u]; !known {
						hopOf[u] = k
						next = append(next, u)
					}
				}
			}
			for _, v := range next {
				h, sent := &ranks[p].Hops[k], &ranks[owner[v]].Hops[k]
				h.Ghosts++
				sent.SendRows++
				if f := ds.Features.Sparse; f != nil {
					n := f.Offsets[v+1] - f.Offsets[v]
					h.FeatureNNZ, sent.SendNNZ = h.FeatureNNZ+n, sent.SendNNZ+n
				}
				for _, u := range ds.In.Row(int(v)) {
					h.Edges++
					if int(owner[u]) == p {
						h.Cut++
					}
				}
			}
			if hop = next; k == 0 {
				ranks[p].Hops[0].Quarters = naiveQuarters(ds, next)
			}
		}
	}
}

// naiveQuarters returns Quarters of vertices by its definition.
func naiveQuarters(ds *graph.Dataset, vertices []uint32) (sums []int64) {
	slices.SortFunc(vertices, func(u, v uint32) int { return len(ds.In.Row(int(u))) - len(ds.In.Row(int(v))) })
	for _, share := range []float64{0.25, 0.5, 0.75} {
		sum := int64(0)
		for _, v := range vertices[:int(math.Ceil(share*float64(len(vertices))))] {
			sum += int64(len(ds.In.Row(int(v))))
		}
		sums = append(sums, sum)
	}
	return sums
}

// Hops that are not counted are estimated, and not more than the graph has.
func TestHopsAreEstimated(t *testing.T) {
	c := RankReport{Vertices: 100, Edges: 400, Ghosts: 50, SendRows: 60, FeatureNNZ: 300}
	hops, exact := c.Halo(3, 0, 320)
	want := []shard.Hop{
		{Ghosts: 50, Edges: 200, Cut: 62, SendRows: 60, FeatureNNZ: 150, SendNNZ: 180},
		{Ghosts: 138, Edges: 552, Cut: 172, SendRows: 138, FeatureNNZ: 414, SendNNZ: 414},
		{Ghosts: 32, Edges: 128, Cut: 40, SendRows: 32, FeatureNNZ: 96, SendNNZ: 96},
	}
	if diff := gocmp.Diff(want, hops); exact || diff != "" {
		t.Errorf("exact %t (-want +got):\n%s", exact, diff)
	}
	c.Hops = []shard.Hop{{Ghosts: 50, Edges: 90, Cut: 80}, {Ghosts: 7, Edges: 40}, {Ghosts: 3}}
	if hops, exact := c.Halo(2, 0, 320); !exact || !gocmp.Equal(hops, c.Hops[:2]) {
		t.Errorf("exact %t, counted hops are %+v", exact, hops)
	}
	if hops, exact := c.Halo(4, 0, 162); exact || len(hops) != 4 || !gocmp.Equal(hops[:3], c.Hops) || hops[3].Ghosts != 0 {
		t.Errorf("exact %t, the last hop is estimated: %+v", exact, hops)
	}
	c.Hops[0].Quarters = []int64{9, 21, 45}
	part := []shard.Hop{{Ghosts: 31, Edges: 33, Cut: 33}, {Ghosts: 26, Edges: 97, Cut: 47}}
	if hops, exact := c.Halo(2, 0.625, 320); !exact || !gocmp.Equal(hops, part) {
		t.Errorf("exact %t, five eighths are %+v", exact, hops)
	}
}

func TestReportTable(t *testing.T) {
	r := Report{Method: "hash", Parts: 2, Ranks: []RankReport{{Vertices: 1, Edges: 20}, {Vertices: 300, SendRows: 4}}}
	r.Vertices, r.Edges, r.CutEdges, r.Ghosts = 301, 20, 5, 7
	r.finish()
	text := r.String()
	for _, want := range []string{"hash, 2 parts of 301 vertices and 20 edges", "edge cut 25.0% (5 edges), 7 ghosts",
		"balance (largest/mean): vertices 1.993, edges 2.000, train 1.000"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if table := lines[len(lines)-3:]; len(table[0]) != len(table[1]) || len(table[1]) != len(table[2]) {
		t.Errorf("columns are not aligned:\n%s", text)
	}
}
