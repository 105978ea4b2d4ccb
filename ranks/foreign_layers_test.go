package ranks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/safetensors"
)

// foreignEdge is an edge of a user's list.
type foreignEdge struct {
	src, dst int
	weight   float64
}

// foreignGraph is a graph as PyTorch Geometric's layers get it: the user's edges, with loops and repeated ones.
type foreignGraph struct {
	name                                string
	directed, weighted, loops, repeated bool
	x                                   [][]float64
	edges                               []foreignEdge
}

// The graphs have vertices without edges, and the two directions of an edge have different weights in the
// graphs that are uneven.
func foreignGraphs() (all []*foreignGraph) {
	for _, shape := range []string{"mutual", "uneven", "directed"} {
		for _, loops := range []string{"", "unit loops", "heavy loops"} {
			for _, weighted := range []bool{false, true} {
				if !weighted && loops == "heavy loops" || shape == "uneven" && (!weighted || loops != "") {
					continue
				}
				g := &foreignGraph{name: strings.TrimSpace(fmt.Sprintf("%s weighted=%t %s", shape, weighted, loops)),
					directed: shape != "mutual", weighted: weighted, loops: loops != ""}
				g.connect(shape, loops)
				all = append(all, g)
			}
		}
	}
	for _, weighted := range []bool{false, true} {
		g := &foreignGraph{name: fmt.Sprintf("repeated edges weighted=%t", weighted), weighted: weighted, repeated: true}
		g.connect("mutual", "")
		g.edges = append(g.edges, g.edges[:8]...)
		all = append(all, g)
	}
	return all
}

// connect makes features and edges.
func (g *foreignGraph) connect(shape, loops string) {
	const n, dim = 14, 5
	rng := rand.New(rand.NewPCG(3, 4))
	weight := func() float64 {
		if !g.weighted {
			return 1
		}
		return float64(1+rng.IntN(15)) / 4
	}
	for v := range n {
		g.x = append(g.x, make([]float64, dim))
		for i := range g.x[v] {
			g.x[v][i] = float64(float32(rng.NormFloat64()))
		}
	}
	for u := range n - 1 { // the last vertex has no edges
		for _, step := range []int{1, 4, 6} {
			v, w := u+step, weight()
			if v >= n-1 || step > 1 && rng.IntN(3) == 0 {
				continue
			}
			if g.edges = append(g.edges, foreignEdge{u, v, w}); shape == "directed" {
				continue
			}
			if shape == "uneven" {
				w = weight()
			}
			g.edges = append(g.edges, foreignEdge{v, u, w})
		}
	}
	for v := 0; loops != "" && v < n; v += 3 {
		w := 1.0
		if loops == "heavy loops" {
			w = 2.5
		}
		g.edges = append(g.edges, foreignEdge{v, v, w})
	}
}

// dataset imports the graph.
func (g *foreignGraph) dataset(t *testing.T) string {
	n := len(g.x)
	c := graph.Content{Name: "foreign", Vertices: int64(n), Classes: foreignClasses,
		Features: graph.Features{Rows: n, Dim: len(g.x[0])}, Labels: make([]int32, n), Split: make([]uint8, n)}
	for v, row := range g.x {
		c.Labels[v], c.Split[v] = int32(v%foreignClasses), uint8(1+v%3)
		for _, x := range row {
			c.Features.Dense = append(c.Features.Dense, float32(x))
		}
	}
	var pairs graph.EdgePairs
	for _, e := range g.edges {
		pairs = append(pairs, uint32(e.src), uint32(e.dst))
	}
	if c.Edges = pairs; g.weighted {
		c.Edges = graph.EachWeight(func(yield func(src, dst uint32, weight float32) error) error {
			for _, e := range g.edges {
				if err := yield(uint32(e.src), uint32(e.dst), float32(e.weight)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return write(t, c)
}

// stateDict is a state dict with random weights.
type stateDict struct {
	rng  *rand.Rand
	list []safetensors.Tensor
}

// add makes a tensor.
func (s *stateDict) add(name string, shape ...int) {
	x := safetensors.Tensor{Name: name, Shape: shape, Data: make([]float32, shape[0])}
	for _, d := range shape[1:] {
		x.Data = slices.Repeat(x.Data, d)
	}
	for i := range x.Data {
		x.Data[i] = float32(s.rng.NormFloat64() / 2)
	}
	s.list = append(s.list, x)
}

// linear makes the weight and the bias of a Linear.
func (s *stateDict) linear(module string, in, out int) {
	s.add(module+".weight", out, in)
	s.add(module+".bias", out)
}

// rows returns a tensor as a matrix with the last dimension as columns.
func (s *stateDict) rows(name string) (m [][]float64) {
	i := slices.IndexFunc(s.list, func(t safetensors.Tensor) bool { return t.Name == name })
	cols := s.list[i].Shape[len(s.list[i].Shape)-1]
	for row := range slices.Chunk(s.list[i].Data, cols) {
		m = append(m, nil)
		for _, x := range row {
			m[len(m)-1] = append(m[len(m)-1], float64(x))
		}
	}
	return m
}

// times is a Linear without bias, and apply one with it.
func (s *stateDict) times(h [][]float64, module string) [][]float64 {
	return product(h, transposed(s.rows(module+".weight")))
}

func (s *stateDict) apply(h [][]float64, module string) [][]float64 {
	return affine(s.times(h, module), s.rows(module + ".bias")[0], false)
}

func relu(h [][]float64) [][]float64 {
	return activated(h, func(x float64) float64 { return max(x, 0) })
}

// normalised is gcn_norm: loops of weight 1 where a vertex has none, and degrees of targets at both ends.
func (g *foreignGraph) normalised() (edges []foreignEdge) {
	degree, loop := make([]float64, len(g.x)), make([]float64, len(g.x))
	for v := range loop {
		loop[v] = 1
	}
	for _, e := range g.edges {
		if e.src == e.dst {
			loop[e.src] = e.weight
		} else {
			edges = append(edges, e)
		}
	}
	for v, w := range loop {
		edges = append(edges, foreignEdge{v, v, w})
	}
	for _, e := range edges {
		degree[e.dst] += e.weight
	}
	for i, e := range edges {
		edges[i].weight /= math.Sqrt(degree[e.src] * degree[e.dst])
	}
	return edges
}

// gather adds the rows of sources, with the weights of edges.
func gather(edges []foreignEdge, h [][]float64) [][]float64 {
	out := make([][]float64, len(h))
	for v := range h {
		out[v] = make([]float64, len(h[v]))
	}
	for _, e := range edges {
		for i, x := range h[e.src] {
			out[e.dst][i] += e.weight * x
		}
	}
	return out
}

// plain returns the edges without weights.
func (g *foreignGraph) plain() []foreignEdge {
	edges := slices.Clone(g.edges)
	for i := range edges {
		edges[i].weight = 1
	}
	return edges
}

// mean returns the edges with coefficients that average over the edges of a target.
func (g *foreignGraph) mean() []foreignEdge {
	edges, degree := g.plain(), make([]float64, len(g.x))
	for _, e := range edges {
		degree[e.dst]++
	}
	for i, e := range edges {
		edges[i].weight = 1 / degree[e.dst]
	}
	return edges
}

// maximum returns the maxima of columns over the sources of a vertex, 0 without sources.
func (g *foreignGraph) maximum(h [][]float64) [][]float64 {
	out, found := gather(nil, h), make([]bool, len(h))
	for _, e := range g.edges {
		for i, x := range h[e.src] {
			if !found[e.dst] || x > out[e.dst][i] {
				out[e.dst][i] = x
			}
		}
		found[e.dst] = true
	}
	return out
}

// attended are the edges of GATConv and GATv2Conv: loops are removed, and added with the mean of incoming edges.
func (g *foreignGraph) attended() (edges []foreignEdge) {
	sum, degree := make([]float64, len(g.x)), make([]float64, len(g.x))
	for _, e := range g.edges {
		if e.src != e.dst {
			edges = append(edges, e)
			sum[e.dst] += e.weight
			degree[e.dst]++
		}
	}
	for v := range g.x {
		edges = append(edges, foreignEdge{v, v, sum[v] / max(degree[v], 1)})
	}
	return edges
}

// attention gathers the rows z with the softmax of scores in each head: side by side, or their mean.
func (g *foreignGraph) attention(z [][]float64, mean bool, score func(head int, e foreignEdge) float64) [][]float64 {
	width := len(z[0]) / foreignHeads
	var heads [][][]float64
	for k := range foreignHeads {
		edges, sum := g.attended(), make([]float64, len(z))
		for i, e := range edges {
			edges[i].weight = math.Exp(score(k, e))
			sum[e.dst] += edges[i].weight
		}
		for i, e := range edges {
			edges[i].weight /= sum[e.dst]
		}
		heads = append(heads, gather(edges, columnsOf(z, k*width, width)))
	}
	if mean {
		return blend(0.5, heads[0], 0.5, heads[1])
	}
	out := heads[0]
	for v := range out {
		out[v] = slices.Concat(out[v], heads[1][v])
	}
	return out
}

func columnsOf(h [][]float64, from, width int) (out [][]float64) {
	for _, row := range h {
		out = append(out, row[from:from+width])
	}
	return out
}

func leaky(x float64) float64 { return max(x, 0.2*x) }

func elu(h [][]float64) [][]float64 {
	return activated(h, func(x float64) float64 { return max(x, 0) + math.Expm1(min(x, 0)) })
}
