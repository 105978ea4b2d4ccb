package forecast

import (
	"math"
	"testing"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/kernels"
)

// As many vertices of others are met as pairs that are drawn meet: the count has a standard
// deviation of 30 at most here, and is within five of what is estimated.
func TestMetIsWhatDrawsMeet(t *testing.T) {
	const n, own = 9000, 3000
	for _, draws := range []int64{0, 100, 3000, 30000} {
		met := map[uint32]bool{}
		for k := range draws {
			if u := kernels.SampleNegative(1, 1, uint32(k%own), uint32(k/own), n); u >= own {
				met[u] = true
			}
		}
		if want := meanDistinct(draws, n, n-own); math.Abs(float64(int64(len(met))-want)) > 150 {
			t.Errorf("%d draws meet %d, estimated are %d", draws, len(met), want)
		}
	}
}

// One rank has all rows of pairs, and none from others; of three each makes room for rows of
// most vertices, and for their gradients; a prediction has no gradients.
func TestPairsTakeRowsOfOthers(t *testing.T) {
	const n, width = 30_000, 2
	at := func(graphRanks int, predicts bool) (rows, grads int64) {
		r := run(t, 2, graphRanks, 0, "none")
		r.Vertices, r.Predicts = n, predicts
		r.Links = &graph.LinkCounts{Train: 300_000, Val: 10, Test: 10, NotVal: 10, NotTest: 10}
		for _, term := range New(r).GraphRank(0, partition.RankReport{Vertices: n / int64(graphRanks), Edges: 10}) {
			switch term.Name {
			case "rows of pairs":
				rows = term.Bytes
			case "gradients of pairs":
				grads = term.Bytes
			}
		}
		return rows, grads
	}
	one, grads := at(1, false)
	if one > 16*300_000 || grads != 4*n*width {
		t.Errorf("one rank: rows of %d bytes, gradients of %d", one, grads)
	}
	three, grads := at(3, false)
	// 100,000 draws meet all but e^-3.3 of 20,000 vertices
	if rows := int64(2 * 4 * width * 19_000); three < 16*100_000+rows || grads < 4*n*width/3 || grads > 4*n*width/3+64 {
		t.Errorf("three ranks: rows of %d bytes, gradients of %d", three, grads)
	}
	if _, grads := at(3, true); grads != 0 {
		t.Errorf("a prediction: gradients of %d bytes", grads)
	}
}

// Two hosts with half of everything each send as much as they get: the rows of edges in one
// exchange, and for pairs that are drawn four one after another, nothing of which is hidden. On
// one host there is no link between them.
func TestPairsTakeTime(t *testing.T) {
	const n = 20_000
	for _, directed := range []bool{false, true} {
		r := run(t, 2, 2, 0, "int8")
		r.Vertices, r.Directed = n, directed
		parts := make([]partition.RankReport, 2)
		for k := range parts {
			parts[k] = partition.RankReport{Vertices: n / 2, Edges: 60_000, Cut: 5000, Ghosts: 3000,
				SendRows: 3000, SendTo: []int64{3000, 3000}}
			parts[k].SendTo[k] = 0
		}
		l := Link{Bandwidth: 1e6, Latency: 0.001, RanksPerHost: 1, Copy: 1e9}
		without := New(r).Epoch(parts, Rates{}, l)
		r.Links = &graph.LinkCounts{Train: 60_000, Val: 10, Test: 10, NotVal: 10, NotTest: 10}
		f, exchanges := New(r), 5.
		if directed {
			exchanges++
		}
		e, sent := f.Epoch(parts, Rates{}, l), float64(f.PairTraffic(parts).Sent)
		want := (sent/2+8)/(PayloadShare*l.Bandwidth) + exchanges*l.Latency
		if math.Abs(e.Pairs-want) > 1e-4*want { // whole rows, of thousands
			t.Errorf("directed %t: %g s, want %g", directed, e.Pairs, want)
		}
		if more := e.Overlapping - without.Overlapping; math.Abs(more-e.Pairs) > 1e-9 || without.Pairs != 0 ||
			e.Sequential-without.Sequential < more-1e-9 {
			t.Errorf("directed %t: an epoch takes %g s more with pairs of %g s", directed, more, e.Pairs)
		}
		l.RanksPerHost = 2
		if here, want := f.Epoch(parts, Rates{}, l).Pairs, (sent+16)/l.Copy; math.Abs(here-want) > 1e-4*want {
			t.Errorf("directed %t: on one host %g s, want %g", directed, here, want)
		}
	}
}
