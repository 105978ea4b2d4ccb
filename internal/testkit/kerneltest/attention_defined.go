package kerneltest

import (
	"math"

	"siafu/kernels"
)

// defined contains the results of attention by definition in float64. For tolerances it also
// contains the sum of the terms' sizes.
type defined struct {
	s, p, keep       []float64 // of each edge and head
	out, lse, dr, dx []float64
	outSize, lseSize []float64
	drSize, dxSize   []float64
	scales           []float64 // of errors: 1 + the largest score
}

// define computes the forward pass by definition, one head after another.
func (c *attentionCase) define(x, r []float64) defined {
	n := len(c.edges) * c.Heads
	d := defined{
		s: make([]float64, n), p: make([]float64, n), keep: make([]float64, n), scales: make([]float64, n),
		out: make([]float64, c.own*c.Columns()), outSize: make([]float64, c.own*c.Columns()),
		lse: make([]float64, c.own*c.Heads), lseSize: make([]float64, c.own*c.Heads),
	}
	for h := range c.Heads {
		top, sum, largest := make([]float64, c.own), make([]float64, c.own), make([]float64, c.own)
		for v := range top {
			top[v] = math.Inf(-1)
		}
		for e, edge := range c.edges {
			s, size := c.score(edge, h, x, r)
			d.s[e*c.Heads+h] = s
			top[edge.target] = math.Max(top[edge.target], s)
			if !math.IsInf(s, 0) {
				largest[edge.target] = math.Max(largest[edge.target], size)
			}
		}
		for e, edge := range c.edges {
			d.p[e*c.Heads+h] = math.Exp(d.s[e*c.Heads+h] - top[edge.target])
			sum[edge.target] += d.p[e*c.Heads+h]
		}
		for e, edge := range c.edges {
			i := e*c.Heads + h
			d.p[i] /= sum[edge.target]
			d.keep[i] = c.keeps(edge, h)
			d.scales[i] = 1 + largest[edge.target]
			for j := range c.Width {
				to := edge.target*c.Columns() + h*c.Width + j
				term := d.p[i] * d.keep[i] * x[edge.source*c.Emitted()+h*c.Width+j]
				d.out[to] += term
				d.outSize[to] += math.Abs(term) * d.scales[i]
			}
		}
		for v := range top {
			d.lse[v*c.Heads+h] = top[v] + math.Log(sum[v])
			d.lseSize[v*c.Heads+h] = 1 + largest[v]
		}
	}
	return d
}

// score returns the score of an edge in a head, and the sum of its terms' sizes.
func (c *attentionCase) score(edge attentionEdge, h int, x, r []float64) (s, size float64) {
	if c.Dynamic {
		for j := range c.Width {
			v := c.weights[h*c.Width+j] * c.leaky(c.leakyInput(edge, h*c.Width+j, x, r))
			s, size = s+v, size+math.Abs(v)
		}
		return s, size
	}
	s = c.leaky(x[edge.source*c.Emitted()+c.Columns()+h] + r[edge.target*c.Heads+h])
	return s, math.Abs(s)
}

func (c *attentionCase) leaky(s float64) float64 {
	if s < 0 {
		return s * float64(c.Slope)
	}
	return s
}

// keeps returns the dropout factor of an edge by definition. The random word of a head is that
// of (source, target, epoch, layer and block of four heads in stream 2).
func (c *attentionCase) keeps(e attentionEdge, head int) float64 {
	d := c.Drop
	if d == nil || d.P == 0 {
		return 1
	}
	source, target := uint32(e.source), uint32(e.target)
	if ids := d.IDs.Host(); ids != nil {
		source, target = ids[source], ids[target]
	}
	words := kernels.Philox([4]uint32{source, target, uint32(d.Epoch), uint32(d.Layer | head/4<<16 | 2<<24)},
		[2]uint32{uint32(d.Seed), uint32(d.Seed >> 32)})
	if float64(words[head%4]) < (1-d.P)*(1<<32) {
		return 1 / (1 - d.P)
	}
	return 0
}

// defineGrad applies the chain rule with the explicit derivative of softmax: ∂p[u]/∂s[w] =
// p[u]·((u = w) - p[w]).
func (c *attentionCase) defineGrad(d *defined) {
	targets, x, r := len(c.r)+c.own*c.AlongWidth(), wide(c.x), wide(c.r)
	d.dr, d.drSize = make([]float64, targets), make([]float64, targets)
	d.dx, d.dxSize = make([]float64, len(c.x)), make([]float64, len(c.x))
	for h := range c.Heads {
		dp, size := make([]float64, len(c.edges)), make([]float64, len(c.edges))
		mean, meanSize := make([]float64, c.own), make([]float64, c.own)
		for e, edge := range c.edges {
			i := e*c.Heads + h
			for j := range c.Width {
				g := float64(c.grad[edge.target*c.Columns()+h*c.Width+j])
				at := edge.source*c.Emitted() + h*c.Width + j
				d.dx[at] += d.p[i] * d.keep[i] * g
				d.dxSize[at] += d.p[i] * d.keep[i] * math.Abs(g) * d.scales[i]
				dp[e] += d.keep[i] * g * float64(c.x[at])
				size[e] += d.keep[i] * math.Abs(g*float64(c.x[at]))
			}
			mean[edge.target] += d.p[i] * dp[e]
			meanSize[edge.target] += d.p[i] * size[e]
		}
		for e, edge := range c.edges {
			i := e*c.Heads + h
			ds := d.p[i] * (dp[e] - mean[edge.target])
			dsSize := d.p[i] * (size[e] + meanSize[edge.target]) * d.scales[i]
			if c.Dynamic {
				c.defineDynamic(d, edge, h, x, r, ds, dsSize)
				continue
			}
			if d.s[i] <= 0 {
				ds *= float64(c.Slope)
			}
			to, from := edge.target*c.Heads+h, edge.source*c.Emitted()+c.Columns()+h
			d.dr[to] += ds
			d.drSize[to] += dsSize
			d.dx[from] += ds
			d.dxSize[from] += dsSize
		}
	}
}

func wide(v []float32) []float64 {
	w := make([]float64, len(v))
	for i, x := range v {
		w[i] = float64(x)
	}
	return w
}
