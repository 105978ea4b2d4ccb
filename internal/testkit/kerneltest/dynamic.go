package kerneltest

import (
	"fmt"
	"math"
	"testing"

	"siafu/internal/testkit/hosttest"
	"siafu/kernels"
)

// scoring selects how attention scores edges.
type scoring int

const (
	static   scoring = -1
	dynamic  scoring = 0 // GATv2; dynamic+N adds N features of each edge
	featured scoring = 1
	several  scoring = 3
	many     scoring = 18 // more than a kernel processes at once
)

// dynamicAttention tests attention with dynamic scores.
func (s Suite) dynamicAttention(t *testing.T) {
	for n, shape := range []struct{ own, heads, width int }{
		{0, 2, 5}, {1, 1, 1}, {7, 1, 5}, {7, 2, 16}, {7, 3, 40}, {7, 9, 3}, {40, 8, 1}, {40, 1, 128},
		{size(40, 12), 12, 40}, {40, 8, 8}, {40, 4, 16}, {size(3000, 300), 2, 3},
	} {
		for i, drop := range dropouts(shape.own + shape.own/3 + 1)[:3] {
			for j, scores := range []scoring{dynamic, featured, several, many} {
				if !hosttest.Sampled(3, n, i, j) {
					continue
				}
				t.Run(fmt.Sprintf("dynamic=%d/own=%d/heads=%d/width=%d/dropout=%d", scores, shape.own, shape.heads,
					shape.width, i), func(t *testing.T) {
					c := s.newAttentionCase(scores, shape.own, shape.heads, shape.width, drop)
					c.check(t)
				})
			}
		}
	}
	for _, scores := range []scoring{dynamic, featured, several} {
		t.Run(fmt.Sprintf("dynamic=%d/differences", scores), func(t *testing.T) {
			s.newAttentionCase(scores, 7, 2, 3, dropouts(10)[2]).checkDifferences(t)
		})
		for heads := range 4 {
			t.Run(fmt.Sprintf("dynamic=%d/large scores of %d", scores, heads+1), func(t *testing.T) {
				c := s.newAttentionCase(scores, 40, heads+1, 5, nil)
				for i := range c.x {
					c.x[i] *= 1e4
				}
				c.checkForward(t)
			})
		}
		t.Run(fmt.Sprintf("dynamic=%d/hub", scores), func(t *testing.T) {
			c := s.newAttentionCase(scores, 40, 8, 5, dropouts(54)[2])
			c.swell(size(20000, 5600))
			c.list()
			c.check(t)
		})
	}
}

// makeDynamic gives the attention dynamic scores with a number of edge features.
func (c *attentionCase) makeDynamic(features int) {
	c.Dynamic = true
	vector := Values(c.Columns(), 7)
	c.Vector, c.weights = kernels.HostMat(c.Heads, c.Width, vector), wide(vector)
	if features > 0 {
		edge := Values(features*c.Columns(), 8)
		c.Edge, c.weights = kernels.HostMat(features, c.Columns(), edge), append(c.weights, wide(edge)...)
	}
}

// feature returns one feature of an edge, exact in float32.
func feature(source, target, number int) float64 {
	return float64(source*7%11-5)/8 + float64((target*5+number*3)%13-6)/16
}

// appendFeatures appends the features of an edge to list.
func (c *attentionCase) appendFeatures(list []float32, source, target int) []float32 {
	for d := range c.Edge.Rows {
		list = append(list, float32(feature(source, target, d)))
	}
	return list
}

// targets adds features to edges by target.
func (c *attentionCase) targets(g kernels.Gather) kernels.Gather {
	if c.Edge.IsNil() {
		return g
	}
	g.Features = make([]float32, len(c.cols)*c.Edge.Rows)
	for v := range c.own {
		for e := c.begin[v]; e < c.end[v]; e++ {
			c.appendFeatures(g.Features[:int(e)*c.Edge.Rows], int(c.cols[e]), v)
		}
	}
	c.selves(&g)
	return g
}

// sources adds features to edges by source; their first source is vertex first. Features are
// stored in reverse order of the edges, so that At is tested.
func (c *attentionCase) sources(g *kernels.Gather, first int) {
	if c.Edge.IsNil() {
		return
	}
	n := len(g.Cols)
	g.Features, g.At = make([]float32, n*c.Edge.Rows), make([]int64, n)
	for u := range g.Begin {
		for e := g.Begin[u]; e < g.End[u]; e++ {
			g.At[e] = int64(n-1) - e
			c.appendFeatures(g.Features[:int(g.At[e])*c.Edge.Rows], first+u, int(g.Cols[e]))
		}
	}
	c.selves(g)
}

func (c *attentionCase) selves(g *kernels.Gather) {
	if g.SelfLoops {
		for v := range c.own {
			g.Self = c.appendFeatures(g.Self, v, v)
		}
	}
}

// leakyInput returns the sum in column j of both endpoints and the edge.
func (c *attentionCase) leakyInput(edge attentionEdge, j int, x, r []float64) float64 {
	t := x[edge.source*c.Columns()+j] + r[edge.target*c.Columns()+j]
	for d := range c.Edge.Rows {
		t += feature(edge.source, edge.target, d) * c.weights[(1+d)*c.Columns()+j]
	}
	return t
}

// defineDynamic adds the gradients that follow from the gradient ds of an edge's score. Sizes
// are those of the sums before.
func (c *attentionCase) defineDynamic(d *defined, edge attentionEdge, h int, x, r []float64, ds, dsSize float64) {
	add := func(to, size []float64, i int, v, bound float64) {
		to[i] += v
		size[i] += math.Abs(bound)
	}
	for k := range c.Width {
		j := h*c.Width + k
		t, slope := c.leakyInput(edge, j, x, r), 1.0
		if t <= 0 {
			slope = float64(c.Slope)
		}
		from, to, along := edge.source*c.Columns()+j, edge.target*c.Columns()+j, len(c.r)+edge.target*c.AlongWidth()+j
		a := c.weights[j] * slope
		add(d.dx, d.dxSize, from, ds*a, dsSize*a)
		add(d.dr, d.drSize, to, ds*a, dsSize*a)
		add(d.dr, d.drSize, along, ds*c.leaky(t), dsSize*(math.Abs(x[from])+math.Abs(r[to])+1))
		for i := range c.Edge.Rows {
			f := feature(edge.source, edge.target, i)
			add(d.dr, d.drSize, along+(1+i)*c.Columns(), ds*a*f, dsSize*a*f)
		}
	}
}

// summed returns the column sums of along, in the order of weights.
func (c *attentionCase) summed(along []float32) []float32 {
	sum := make([]float32, len(c.weights))
	for i, v := range along {
		sum[i%len(sum)] += v
	}
	return sum
}
