package ranks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/graph"
	"siafu/graph/partition/multilevel"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels"
	"siafu/kernels/model"
)

// Mini-batches of all vertices are exact training except for the order of sums: 1e-6 allows the float32
// errors of 5 steps. They are all training vertices with all neighbours sampled, all clusters, walks from
// all vertices, and all vertices of other ranks. Ranks fetch sampled rows from each other, so any number
// of them is exact; clusters and walks lack the edges between ranks.
func TestFullSampleIsExact(t *testing.T) {
	t.Parallel()
	seed := hosttest.Turn(t, 4)
	for d, directed := range []bool{false, true} {
		data := generated(t, directed)
		for k, kind := range []string{"gcn", "sage", "gin", "gat", "gatv2"} {
			for o, order := range []string{"gather-first", "apply-first"} {
				if (kind == "gat" || kind == "gin") && (order == "gather-first") == directed {
					continue // as good
				}
				if kind == "gatv2" && (directed || order == "gather-first") {
					continue // gat's
				}
				c := quick(t)
				c.Ranks, c.Servers, c.Threads, c.Epochs, c.EvalEvery, c.Order, c.CacheInput = 1, 0, 2, 5, 0, order, "off"
				c.Model, c.Layers, c.LR, c.Dropout, c.Optimizer, c.AttentionDropout = kind, 3, 0.05, 0.3, "sgd", 0.2
				want := train(t, c, data).losses()
				for i, b := range []struct {
					batch string
					ranks int
				}{{"neighbor:500,500,500,10000", 3}, {"cluster:7,7", 1}, {"saint:500", 1}, {"approximate:1", 3}} {
					if !hosttest.Sampled(2, d, k, o, i, seed) {
						continue
					}
					c.Batch, c.Ranks = b.batch, b.ranks
					sameLosses(t, fmt.Sprint(kind, " ", order, " directed: ", directed, " ", b), train(t, c, data).losses(), want, 1e-6)
				}
			}
		}
	}
}

// Clusters of all of a rank's vertices, walks from all of them, and an approximation without vertices of
// other ranks train like isolated ranks: all count degrees among own vertices only.
func TestAllClustersAreAlone(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for _, kind := range []string{"gcn", "sage"} {
		c := quick(t)
		c.Ranks, c.Servers, c.Threads, c.Epochs, c.EvalEvery, c.CacheInput, c.Model = 3, 0, 1, 10, 0, "off", kind
		c.LR, c.Dropout, c.Optimizer, c.Refresh = 0.05, 0.3, "sgd", "never"
		want := train(t, c, data).losses()
		for _, batch := range []string{"cluster:6,6", "saint:500", "approximate:0.001"} {
			c.Refresh, c.Batch = "always", batch
			sameLosses(t, kind+" "+batch, train(t, c, data).losses(), want, 1e-6)
		}
	}
}

// drawn makes an update from the edges of each layer and the targets, with dense matrices in
// float64. It returns the sum of losses.
func (g *scaled) drawn(a0, a1 [][]float64, target []bool, lr float64) float64 {
	count := 0.0
	for _, is := range target {
		if is {
			count++
		}
	}
	ax := product(a0, g.x)
	z := addedUp(product(ax, g.w0), g.b0)
	hidden := make([][]float64, len(z))
	for v, row := range z {
		for _, x := range row {
			hidden[v] = append(hidden[v], max(x, 0))
		}
	}
	gathered := product(a1, hidden)
	grads, loss := g.softmaxOf(addedUp(product(gathered, g.w1), g.b1), target, max(count, 1))
	g.update(ax, z, gathered, grads, product(product(transposed(a1), grads), transposed(g.w1)), lr)
	return loss
}

// dense returns a network of two layers with float64 weights, and a run's configuration and
// dataset with the same weights.
func dense(t *testing.T, ranks int, batch string, directed, weighted bool) (g *scaled, c Config, data string, owner []int) {
	const n = 60
	content := randomContent(n, 3)
	content.Symmetrise = !directed
	weigh(&content, weighted)
	s := model.Spec{Kind: "gcn", Dims: []int{content.Features.Dim, 6, 3}}
	flat := make([]float32, s.NumWeights())
	s.Initialize(flat, "xavier", 4)
	data, owner = write(t, content), inTurns(n, ranks)
	partitionBy(t, data, "", ranks, owner...)
	c = inBatches(t, ranks, 1)
	c.Hidden, c.Epochs, c.LR, c.Dropout, c.InputDropout, c.EvalEvery, c.VertexOrder, c.Intervals = 6, 12, 0.3, 0, 0, 0, "natural", 2
	c.Optimizer, c.Momentum, c.WeightDecay, c.Init, c.Batch = "sgd", 0, 0, weightsFile(t, s, flat), batch
	g = newScaled(content, s, owner, flat, ranks, 1)
	g.along(t, data)
	return g, c, data, owner
}

// weigh gives the edges of a content weights, if weighted.
func weigh(c *graph.Content, weighted bool) {
	if weighted {
		c.Edges = heavy{c.Edges.(graph.EdgePairs)}
	}
}

// along loads the edges of a dataset, with their weights.
func (g *scaled) along(t *testing.T, data string) {
	g.edges = edgesOf(t, data)
	g.a = g.within(slices.Repeat([]bool{true}, len(g.edges)))
}

// edgesOf returns the weights of a dataset's edges by target and source: 1 without weights,
// and 0 without an edge.
func edgesOf(t *testing.T, data string) [][]float64 {
	ds, err := graph.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	edges := square(int(ds.Meta.Vertices))
	for v := range edges {
		for i := ds.In.Offsets[v]; i < ds.In.Offsets[v+1]; i++ {
			edges[v][ds.In.Cols[i]] = 1
			if ds.Weights != nil {
				edges[v][ds.In.Cols[i]] = float64(ds.Weights[i])
			}
		}
	}
	return edges
}

// deal returns the k-th of count parts of a list, as a rank shuffles it in each epoch.
func deal(c Config, epoch, rank, k, count int, list []int) (share []int) {
	draws := func() *rand.Rand { return rand.New(rand.NewPCG(c.Seed, uint64(epoch)<<32|uint64(rank))) }
	order, k := draws().Perm(len(list)), draws().Perm(count)[k]
	for _, i := range order[k*len(list)/count : (k+1)*len(list)/count] {
		share = append(share, list[i])
	}
	return share
}

// Sampled neighbours equal a second implementation: a layer has the sampled edges, scaled by
// n/D for a vertex with n neighbours (itself included) of which D are sampled. Dense matrices
// in float64: 1e-4 allows the float32 errors of 36 steps.
func TestNeighboursAreSampled(t *testing.T) {
	t.Parallel()
	for _, ranks := range []int{1, 3} {
		for k := range 4 {
			const size, steps = 7, 3 // 20 training vertices in all
			fanouts, directed, weighted := []int{2, 3}, k%2 > 0, k/2 > 0
			g, c, data, owner := dense(t, ranks, fmt.Sprintf("neighbor:2,3,%d", (size+ranks-1)/ranks), directed, weighted)
			got := train(t, c, data)
			var want []float64
			for epoch := 1; epoch <= c.Epochs; epoch++ {
				loss := 0.0
				for k := range steps {
					target := make([]bool, len(owner))
					for q := range ranks {
						var mine []int
						for v := range owner {
							if owner[v] == q && g.content.Split[v] == graph.SplitTrain {
								mine = append(mine, v)
							}
						}
						for _, v := range deal(c, epoch, q, k, steps, mine) {
							target[v] = true
						}
					}
					layers := make([][][]float64, 2)
					for l := range layers {
						draw := kernels.Sample{Seed: c.Seed, Step: (epoch-1)*steps + k + 1, Layer: l}
						layers[l] = g.sampledEdges(owner, ranks, fanouts[l], draw)
					}
					loss += g.drawn(layers[0], layers[1], target, c.LR)
				}
				want = append(want, loss/20)
			}
			sameLosses(t, fmt.Sprint(ranks, " ranks, directed: ", directed, ", weighted: ", weighted), got.losses()[:c.Epochs], want, 1e-4)
		}
	}
}

// sampledEdges returns Â of the neighbours that every vertex samples: in the order of its
// rank's vertices, then of each other rank's, and itself last.
func (g *scaled) sampledEdges(owner []int, ranks, fanout int, draw kernels.Sample) [][]float64 {
	a := square(len(owner))
	for v := range a {
		var pool []int
		for k := range ranks {
			from := k // first the rank itself, then the others
			if k == 0 {
				from = owner[v]
			} else if k <= owner[v] {
				from = k - 1
			}
			for u := range a {
				if u != v && owner[u] == from && g.a[v][u] != 0 {
					pool = append(pool, u)
				}
			}
		}
		pool = append(pool, v)
		chosen := draw.Draw(nil, uint32(v), fanout, len(pool))
		for _, i := range chosen {
			a[v][pool[i]] = g.a[v][pool[i]] * float64(len(pool)) / float64(len(chosen))
		}
	}
	return a
}

// Joined clusters equal a second implementation: with the edges between them, and degrees, or
// sums of weights, among them. Tolerance as above.
func TestClustersAreJoined(t *testing.T) {
	t.Parallel()
	const clusters, joined = 6, 2
	for k := range 4 {
		directed, weighted := k%2 > 0, k/2 > 0
		g, c, data, _ := dense(t, 1, fmt.Sprintf("cluster:%d,%d", clusters, joined), directed, weighted)
		got := train(t, c, data)
		ds, err := graph.Open(data)
		if err != nil {
			t.Fatal(err)
		}
		defer ds.Close()
		slack := multilevel.Slack{Vertices: 1.05, Edges: math.Inf(1), Train: math.Inf(1)}
		of := multilevel.Partition(ds, multilevel.Options{Parts: clusters, Seed: c.Seed, Slack: slack})
		var want []float64
		for epoch := 1; epoch <= c.Epochs; epoch++ {
			order, loss := rand.New(rand.NewPCG(c.Seed, uint64(epoch)<<32)).Perm(clusters), 0.0
			for ; len(order) > 0; order = order[joined:] {
				in, target := make([]bool, len(of)), make([]bool, len(of))
				for v, k := range of {
					in[v] = slices.Contains(order[:joined], int(k))
					target[v] = in[v] && ds.Split[v] == graph.SplitTrain
				}
				a := g.within(in)
				loss += g.drawn(a, a, target, c.LR)
			}
			want = append(want, loss/20)
		}
		sameLosses(t, fmt.Sprint("directed: ", directed, ", weighted: ", weighted), got.losses()[:c.Epochs], want, 1e-4)
	}
}

// within returns Â of the subgraph of some vertices.
func (g *scaled) within(in []bool) [][]float64 {
	a, into, out := square(len(in)), make([]float64, len(in)), make([]float64, len(in))
	each := func(visit func(v, u int, w float64)) {
		for v := range in {
			for u, w := range g.edges[v] {
				if in[v] && in[u] && (u == v || w != 0) {
					if u == v {
						w = 1
					}
					visit(v, u, w)
				}
			}
		}
	}
	each(func(v, u int, w float64) { into[v], out[u] = into[v]+w, out[u]+w })
	each(func(v, u int, w float64) { a[v][u] = w / math.Sqrt(into[v]*out[u]) })
	return a
}
