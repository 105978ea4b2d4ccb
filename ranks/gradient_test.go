package ranks

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"siafu/graph"
	"siafu/kernels/model"
	"siafu/ranks/host/hosttest"
)

// reference is every kind of network written down a second time, in float64
// over dense matrices and without a gradient: central differences of its loss
// are what the gradients of a whole distributed run are compared with.
type reference struct {
	content graph.Content
	spec    model.Spec
	a       [][]float64 // Â
	x       [][]float64
	// features of edges, and of self loops their mean: of the dataset, or its weights.
	features [][][]float64
	running  map[int]float64 // what running means take in, by weight
}

func newReference(c graph.Content, s model.Spec) *reference {
	n := int(c.Vertices)
	r := &reference{content: c, spec: s, a: square(n), x: make([][]float64, n), running: map[int]float64{}}
	in, out := make([]float64, n), make([]float64, n)
	for v := range n {
		r.x[v] = make([]float64, c.Features.Dim)
		for j := range r.x[v] {
			r.x[v][j] = float64(c.Features.Dense[v*c.Features.Dim+j])
		}
	}
	weighted, ok := c.Edges.(graph.WeightedSource)
	ok = ok && s.Weighs()
	add := func(s, d uint32, weight float32) error {
		for _, e := range [][2]uint32{{s, d}, {d, s}} {
			if (e == [2]uint32{s, d} || c.Symmetrise) && (ok || r.a[e[1]][e[0]] == 0) {
				r.a[e[1]][e[0]] += float64(weight)
				in[e[1]] += float64(weight)
				out[e[0]] += float64(weight)
			}
		}
		return nil
	}
	if ok {
		weighted.EachWeight(add)
	} else {
		c.Edges.Each(func(s, d uint32) error { return add(s, d, 1) })
	}
	r.features = make([][][]float64, n)
	for v := range n {
		r.features[v] = make([][]float64, n)
		edges := 0.0
		for u, w := range r.a[v] {
			if r.features[v][u] = []float64{w}; w > 0 {
				edges++
			}
		}
		r.features[v][v] = []float64{in[v] / max(edges, 1)}
		for u := range n {
			r.a[v][u] = coefficient(s.Kind, r.a[v][u], v == u, in[v], out[u])
		}
	}
	if s.Design.EdgeDim > 0 {
		r.features = meanFeatures(c)
	}
	return r
}

// coefficient is the entry of Â for an edge (1, or its weight) or no edge (0) between
// vertices of the given degrees, or sums of weights.
func coefficient(kind string, edge float64, self bool, in, out float64) float64 {
	loop := 0.0
	if self {
		loop = 1
	}
	switch kind {
	case "gcn", "gcnii", "appnp", "sgc", "sign":
		return (edge + loop) / math.Sqrt((in+1)*(out+1))
	case "sage":
		if in == 0 {
			return 0
		}
		return edge / in
	case "sage-max", "sage-pool":
		return edge
	case "gin", "gat", "gatv2":
		return edge + loop
	}
	return loop // the perceptron
}

func square(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}

func product(a, b [][]float64) [][]float64 {
	m := make([][]float64, len(a))
	for i := range a {
		m[i] = make([]float64, len(b[0]))
		for k, x := range a[i] {
			for j, y := range b[k] {
				m[i][j] += x * y
			}
		}
	}
	return m
}

// affine adds a bias and applies ReLU.
func affine(m [][]float64, bias []float64, relu bool) [][]float64 {
	for v := range m {
		for j := range m[v] {
			m[v][j] += bias[j]
			if relu {
				m[v][j] = max(m[v][j], 0)
			}
		}
	}
	return m
}

func plus(a, b [][]float64) [][]float64 {
	for v := range a {
		for j := range a[v] {
			a[v][j] += b[v][j]
		}
	}
	return a
}

// blend is a share of a and one of b.
func blend(x float64, a [][]float64, y float64, b [][]float64) [][]float64 {
	sum := make([][]float64, len(a))
	for v := range a {
		sum[v] = make([]float64, len(a[v]))
		for j := range a[v] {
			sum[v][j] = x*a[v][j] + y*b[v][j]
		}
	}
	return sum
}

// activated is f of each element.
func activated(m [][]float64, f func(float64) float64) [][]float64 {
	out := blend(1, m, 0, m)
	for _, row := range out {
		for j, x := range row {
			row[j] = f(x)
		}
	}
	return out
}

// part is layer l of a network whose layers differ, behind those that made outputs.
func (r *reference) part(p model.Part, h [][]float64, outputs [][][]float64, params []model.Param, w []float64, last bool) [][]float64 {
	matrix := func(i int) [][]float64 {
		var m [][]float64
		for j := range params[i].Rows {
			m = append(m, w[params[i].Offset+j*params[i].Cols:params[i].Offset+(j+1)*params[i].Cols])
		}
		return m
	}
	d := r.spec.Design
	var first [][]float64
	if len(p.From) > 0 {
		first = outputs[p.From[0]]
	}
	switch p.Kind {
	case "mlp":
		return affine(product(h, matrix(0)), matrix(1)[0], !p.Plain)
	case "linear":
		return product(h, matrix(0))
	case "drop":
		return h
	case "initial":
		z, beta := blend(1-d.Alpha, product(r.a, h), d.Alpha, first), math.Log(d.Theta/float64(p.Depth)+1)
		return activated(blend(1-beta, z, beta, product(z, matrix(0))), func(x float64) float64 { return max(x, 0) })
	case "propagate":
		if first == nil {
			return product(r.a, h)
		}
		return blend(1-d.Alpha, product(r.a, h), d.Alpha, first)
	case "power", "last power":
		far, from := product(r.a, h), len(h[0])/(1+d.Hops)*p.Depth
		for v := range h {
			copy(far[v][:from], h[v])
		}
		if p.Kind == "power" {
			return far
		}
		return affine(far, matrix(0)[0], true)
	case "propagate with bias":
		return affine(product(r.a, h), matrix(0)[0], false)
	case "norm":
		return r.normalised(h, params, matrix)
	case "jump cat":
		sum := product(h, matrix(0)[len(p.From)*len(h[0]):])
		for k, from := range p.From {
			sum = plus(sum, product(outputs[from], matrix(0)[k*len(h[0]):(k+1)*len(h[0])]))
		}
		return affine(sum, matrix(1)[0], false)
	case "jump max":
		top := activated(h, func(x float64) float64 { return x })
		for _, from := range p.From {
			for v, row := range outputs[from] {
				for j, x := range row {
					top[v][j] = max(top[v][j], x)
				}
			}
		}
		return top
	case "tail":
		f := map[string]func(float64) float64{
			"relu":  func(x float64) float64 { return max(x, 0) },
			"elu":   func(x float64) float64 { return max(x, 0) + math.Expm1(min(x, 0)) },
			"gelu":  func(x float64) float64 { return x * math.Erfc(-x/math.Sqrt2) / 2 },
			"leaky": func(x float64) float64 { return max(x, 0.01*x) },
			"prelu": func(x float64) float64 { return max(x, 0) + matrix(0)[0][0]*min(x, 0) },
		}[cmp.Or(d.Activation, map[bool]string{false: "relu", true: "elu"}[r.spec.Attends()])]
		switch {
		case first == nil:
			return activated(h, f)
		case d.Residual == "add":
			return blend(1, activated(h, f), 1, first)
		}
		return activated(blend(1-d.Alpha, h, d.Alpha, first), f)
	case "gat":
		z, source, target := product(h, matrix(0)), matrix(1), matrix(2)
		return r.attentive(z, source, matrix(3)[0], func(k int, z, y, _ []float64) (s float64) {
			for j := range z {
				s += z[j]*source[k][j] + y[j]*target[k][j]
			}
			return max(s, 0.2*s)
		}, z, !last, !p.Plain)
	case "gatv2":
		z, vector, edge := product(h, matrix(0)), matrix(2), matrix(len(params)-3)
		return r.attentive(z, vector, matrix(len(params) - 1)[0], func(k int, z, y, features []float64) (s float64) {
			for j := range z {
				t := z[j] + y[j]
				for d := range r.spec.EdgeDim() {
					t += features[d] * edge[d][k*len(z)+j]
				}
				s += vector[k][j] * max(t, 0.2*t)
			}
			return s
		}, affine(product(h, matrix(1)), matrix(len(params) - 2)[0], false), !last, !p.Plain)
	}
	return r.layer(h, params, w, !p.Plain)
}

// normalised is h with normalised rows or columns.
func (r *reference) normalised(h [][]float64, params []model.Param, matrix func(i int) [][]float64) [][]float64 {
	z, eps := h, 1e-5
	if least, divided := map[string]float64{"l2": 1e-12, "ball": 1}[r.spec.Design.Norm]; divided {
		return unit(h, least)
	}
	if r.spec.Design.Norm == "layer" {
		z = transposed(h)
	}
	columns, sum := transposed(z), 0.0
	for c, column := range columns {
		mean, variance, n := 0.0, 0.0, float64(len(column))
		for _, x := range column {
			mean += x / n
		}
		for i, x := range column {
			variance += (x - mean) * (x - mean) / n
			column[i] -= mean
		}
		if sum += variance; r.spec.Design.Norm == "pair" {
			continue
		}
		for i := range column {
			column[i] /= math.Sqrt(variance + eps)
		}
		if len(params) == 4 {
			r.running[params[2].Offset+c], r.running[params[3].Offset+c] = mean, variance*n/(n-1)
		}
	}
	if r.spec.Design.Norm == "pair" {
		return activated(transposed(columns), func(x float64) float64 { return x / math.Sqrt(sum+eps) })
	}
	if z = transposed(columns); r.spec.Design.Norm == "layer" {
		z = columns
	}
	gain, bias := matrix(0)[0], matrix(1)[0]
	for _, row := range z {
		for c := range row {
			row[c] = row[c]*gain[c] + bias[c]
		}
	}
	return z
}

// unit are rows divided by their norms, or by the least that counts.
func unit(h [][]float64, least float64) [][]float64 {
	out := activated(h, func(x float64) float64 { return x })
	for _, row := range out {
		norm := math.Sqrt(product([][]float64{row}, transposed([][]float64{row}))[0][0])
		for j := range row {
			row[j] /= max(norm, least)
		}
	}
	return out
}

// layer is one layer with the weights of params, in their order.
func (r *reference) layer(h [][]float64, params []model.Param, w []float64, relu bool) [][]float64 {
	matrix := func(i int) [][]float64 {
		p := params[i]
		m := make([][]float64, p.Rows)
		for j := range m {
			m[j] = w[p.Offset+j*p.Cols : p.Offset+(j+1)*p.Cols]
		}
		return m
	}
	switch r.spec.Kind {
	case "sage-pool":
		pooled := affine(product(h, matrix(0)), matrix(1)[0], true)
		return affine(plus(product(h, matrix(2)), product(r.maxima(pooled), matrix(3))), matrix(4)[0], relu)
	case "sage-max":
		return affine(plus(product(r.maxima(h), matrix(0)), product(h, matrix(1))), matrix(2)[0], relu)
	case "sage":
		z := plus(product(r.a, product(h, matrix(0))), product(h, matrix(1)))
		return affine(z, matrix(2)[0], relu)
	case "gin":
		inner := affine(product(r.a, product(h, matrix(0))), matrix(1)[0], true)
		return affine(product(inner, matrix(2)), matrix(3)[0], relu)
	}
	return affine(product(r.a, product(h, matrix(0))), matrix(1)[0], relu)
}

// maxima are those of the columns of in-neighbours' rows.
func (r *reference) maxima(h [][]float64) [][]float64 {
	out := make([][]float64, len(h))
	for v := range h {
		out[v] = make([]float64, len(h[0]))
		for j := range out[v] {
			most := math.Inf(-1)
			for u, edge := range r.a[v] {
				if edge > 0 {
					most = max(most, h[u][j])
				}
			}
			if !math.IsInf(most, -1) {
				out[v][j] = most
			}
		}
	}
	return out
}

// attentive is a layer of attention among rows z, with shape's heads and their width and
// the scores of head k, of the columns of z[u] and y[v] and the weight of the edge; hidden
// layers have ELU and heads side by side, the last takes their mean.
func (r *reference) attentive(z, shape [][]float64, bias []float64, score func(k int, z, y, features []float64) float64, y [][]float64, hidden, elu bool) [][]float64 {
	heads, width := len(shape), len(shape[0])
	out := make([][]float64, len(z))
	for v := range z {
		out[v] = make([]float64, heads*width)
		for k := range heads {
			weights, sum := make([]float64, len(z)), 0.0
			for u := range z {
				if r.a[v][u] == 0 {
					continue
				}
				weights[u] = math.Exp(score(k, z[u][k*width:(k+1)*width], y[v][k*width:(k+1)*width], r.features[v][u]))
				sum += weights[u]
			}
			for u, w := range weights {
				for j := range width {
					out[v][k*width+j] += w / sum * z[u][k*width+j]
				}
			}
		}
	}
	if !hidden {
		for v := range out {
			mean := make([]float64, width)
			for i, x := range out[v] {
				mean[i%width] += x / float64(heads)
			}
			out[v] = mean
		}
		return affine(out, bias, false)
	}
	for _, row := range affine(out, bias, false) {
		for j, x := range row {
			if x < 0 && elu {
				row[j] = math.Expm1(x)
			}
		}
	}
	return out
}

// loss is the mean cross entropy over the training vertices.
func (r *reference) loss(w []float64) float64 {
	h := r.x
	var outputs [][][]float64
	for l, part := range r.spec.Parts() {
		var params []model.Param
		for _, p := range r.spec.Params() {
			if p.Layer == l {
				params = append(params, p)
			}
		}
		h = r.part(part, h, outputs, params, w, l == r.spec.Layers()-1)
		outputs = append(outputs, h)
	}
	sum, count := 0.0, 0.0
	for v, label := range r.content.Labels {
		if r.content.Split[v] == graph.SplitTrain {
			z := 0.0
			for _, x := range h[v] {
				z += math.Exp(x)
			}
			sum += math.Log(z) - h[v][label]
			count++
		}
	}
	return sum / count
}

// smallGraph is a random graph with two isolated vertices.
func smallGraph(directed, sparse bool, seed uint64) graph.Content {
	const n, dim, classes = 18, 5, 3
	rng := rand.New(rand.NewPCG(seed, 2))
	c := graph.Content{
		Name: "small", Vertices: n, Symmetrise: !directed, Classes: classes,
		Features: graph.Features{Rows: n, Dim: dim, Dense: make([]float32, n*dim)},
		Labels:   make([]int32, n), Split: make([]uint8, n),
	}
	var pairs graph.EdgePairs
	for range 40 {
		if s, d := rng.Uint32N(n-2), rng.Uint32N(n-2); s != d {
			pairs = append(pairs, s, d)
		}
	}
	c.Edges = pairs
	for i := range c.Features.Dense {
		if !sparse || rng.IntN(6) == 0 {
			c.Features.Dense[i] = float32(rng.NormFloat64())
		}
	}
	for v := range c.Labels {
		c.Labels[v] = rng.Int32N(classes)
		c.Split[v] = uint8(rng.IntN(2)) // train or none
	}
	c.Split[0], c.Split[n-1] = graph.SplitTrain, graph.SplitTrain
	return c
}

// owners of smallGraph's vertices among three ranks; rank 1 owns nothing, and
// rank 2 the isolated vertices and one that has no edge inside its partition.
func lopsided() []int {
	owner := make([]int, 18)
	owner[3], owner[16], owner[17] = 2, 2, 2
	return owner
}

// Every gradient that a distributed run computes is that of the loss: one
// step of plain SGD moves each weight by its gradient times the rate, which is
// large so that the difference of two float32 weights loses nothing.
//
// Central differences with h=1e-6 in float64 are right to some 1e-9; what
// remains is float32 in the run, a few units of 6e-8 relative to the largest
// gradients that a sum is made of.
func TestGradientsAgainstCentralDifferences(t *testing.T) {
	tested := map[string]bool{}
	for k, tc := range []struct {
		name             string
		directed, sparse bool
		set              func(*Config)
		lopsided         bool
		weighted         bool
		edgeDim          int // features of an edge
	}{
		{name: "one rank"},
		{name: "one layer", set: func(c *Config) { c.Layers = 1; c.Ranks = 3 }},
		{name: "three layers", set: func(c *Config) { c.Layers, c.Ranks = 3, 4 }},
		{name: "directed", directed: true, set: func(c *Config) { c.Ranks = 4 }},
		{name: "directed three layers without servers", directed: true, set: func(c *Config) { c.Layers, c.Ranks, c.Servers = 3, 4, 0 }},
		{name: "two servers", set: func(c *Config) { c.Ranks, c.Servers = 5, 2 }},
		{name: "gather first", directed: true, set: func(c *Config) { c.Ranks, c.Order, c.CacheInput = 4, "gather-first", "off" }},
		{name: "gather first kept", directed: true, set: func(c *Config) { c.Ranks, c.Order, c.CacheInput = 4, "gather-first", "on" }},
		{name: "apply first", directed: true, set: func(c *Config) { c.Ranks, c.Order = 4, "apply-first" }},
		{name: "sparse apply first", sparse: true, directed: true, set: func(c *Config) { c.Ranks, c.Order = 4, "apply-first" }},
		{name: "sparse gather first", sparse: true, directed: true, set: func(c *Config) { c.Ranks, c.Order, c.CacheInput = 4, "gather-first", "off" }},
		{name: "sparse kept", sparse: true, set: func(c *Config) { c.Ranks, c.CacheInput, c.Order = 4, "on", "gather-first" }},
		{name: "no overlap", directed: true, set: func(c *Config) { c.Ranks, c.Mode = 4, "nopipe" }},
		{name: "zstd", directed: true, set: func(c *Config) { c.Ranks, c.Codec = 4, "zstd" }},
		{name: "empty partition", lopsided: true, set: func(c *Config) { c.Ranks, c.Servers = 3, 0 }},
		{name: "empty partition directed", directed: true, lopsided: true, set: func(c *Config) { c.Ranks = 4 }},
		{name: "weights", weighted: true},
		{name: "weights directed", weighted: true, directed: true, set: func(c *Config) { c.Ranks, c.Layers = 4, 3 }},
		{name: "weights kept", weighted: true, set: func(c *Config) { c.Ranks, c.Order, c.CacheInput = 4, "gather-first", "on" }},
		{name: "weights empty partition", weighted: true, lopsided: true, set: func(c *Config) { c.Ranks, c.Servers = 3, 0 }},
		{name: "weights sage", weighted: true, directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers = "sage", 4, 3 }},
		{name: "weights sage kept", weighted: true, set: func(c *Config) { c.Model, c.Ranks, c.Order, c.CacheInput = "sage", 3, "gather-first", "on" }},
		{name: "weights gin", weighted: true, directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Order = "gin", 4, "apply-first" }},
		{name: "weights gcnii", weighted: true, directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers, c.Alpha = "gcnii", 4, 3, 0.3 }},
		{name: "weights appnp", weighted: true, set: func(c *Config) { c.Model, c.Ranks, c.Hops = "appnp", 3, 2 }},
		{name: "weights sgc", weighted: true, directed: true, set: func(c *Config) { c.Model, c.Ranks, c.CacheInput = "sgc", 4, "off" }},
		{name: "weights sign kept", weighted: true, directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Powers, c.CacheInput = "sign", 4, 2, "on" }},
		{name: "weights gat", weighted: true, directed: true, set: func(c *Config) { c.Model, c.Heads, c.Ranks = "gat", 2, 3 }},
		{name: "sage", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers = "sage", 4, 3 }},
		{name: "sage gather first", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Order, c.CacheInput = "sage", 4, "gather-first", "off" }},
		{name: "sage kept", set: func(c *Config) { c.Model, c.Ranks, c.Order, c.CacheInput = "sage", 3, "gather-first", "on" }},
		{name: "sage apply first", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Order = "sage", 4, "apply-first" }},
		{name: "sage sparse apply first", sparse: true, directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Order = "sage", 4, "apply-first" }},
		{name: "sage sparse kept", sparse: true, set: func(c *Config) { c.Model, c.Ranks, c.CacheInput, c.Order = "sage", 4, "on", "gather-first" }},
		{name: "sage empty partition", lopsided: true, set: func(c *Config) { c.Model, c.Ranks, c.Servers = "sage", 3, 0 }},
		{name: "sage one layer", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers = "sage", 4, 1 }},
		{name: "sage-max", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers = "sage-max", 4, 3 }},
		{name: "sage-max sparse not kept", sparse: true, set: func(c *Config) { c.Model, c.Ranks, c.CacheInput = "sage-max", 3, "off" }},
		{name: "sage-max kept", set: func(c *Config) { c.Model, c.CacheInput, c.Layers = "sage-max", "on", 3 }},
		{name: "sage-max add empty partition", lopsided: true, set: func(c *Config) { c.Model, c.Ranks, c.Servers, c.Layers, c.Residual = "sage-max", 3, 0, 3, "add" }},
		{name: "sage-pool", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers = "sage-pool", 4, 3 }},
		{name: "sage-pool narrow sparse", sparse: true, directed: true, set: func(c *Config) { c.Model, c.PoolHidden, c.Ranks = "sage-pool", 2, 3 }},
		{name: "sage-pool features of ghosts kept", directed: true, set: func(c *Config) { c.Model, c.PoolHidden, c.Ranks, c.GhostFeatures = "sage-pool", 6, 4, "kept" }},
		{name: "sage-pool empty partition", lopsided: true, set: func(c *Config) { c.Model, c.Ranks, c.Servers = "sage-pool", 3, 0 }},
		{name: "sage-pool one layer no overlap", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers, c.Mode = "sage-pool", 4, 1, "nopipe" }},
		{name: "sage-pool l2", directed: true, set: func(c *Config) { c.Model, c.Norm, c.Ranks, c.Layers = "sage-pool", "l2", 4, 3 }},
		{name: "gin", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers = "gin", 4, 3 }},
		{name: "gin not kept", set: func(c *Config) { c.Model, c.Ranks, c.CacheInput = "gin", 3, "off" }},
		{name: "gin sparse", sparse: true, set: func(c *Config) { c.Model, c.Ranks = "gin", 4 }},
		{name: "gin gather first", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Order, c.CacheInput = "gin", 4, "gather-first", "off" }},
		{name: "gin kept", set: func(c *Config) { c.Model, c.Ranks, c.Order, c.CacheInput = "gin", 3, "gather-first", "on" }},
		{name: "gin apply first", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers, c.Order = "gin", 4, 3, "apply-first" }},
		{name: "gin sparse apply first", sparse: true, directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Order = "gin", 4, "apply-first" }},
		{name: "gin empty partition", lopsided: true, set: func(c *Config) { c.Model, c.Ranks, c.Servers, c.Order = "gin", 3, 0, "apply-first" }},
		{name: "gat one rank", set: func(c *Config) { c.Model, c.Heads, c.Layers = "gat", 2, 2 }},
		{name: "gat", directed: true, set: func(c *Config) { c.Model, c.Heads, c.Ranks, c.Layers = "gat", 3, 4, 3 }},
		{name: "gat output heads", set: func(c *Config) { c.Model, c.Heads, c.OutputHeads, c.Ranks = "gat", 2, 3, 4 }},
		{name: "gat sparse no overlap", sparse: true, directed: true, set: func(c *Config) { c.Model, c.Heads, c.Ranks, c.Mode = "gat", 2, 4, "nopipe" }},
		{name: "gat empty partition", lopsided: true, directed: true, set: func(c *Config) { c.Model, c.Heads, c.Ranks, c.Servers = "gat", 2, 3, 0 }},
		{name: "gat one layer", set: func(c *Config) { c.Model, c.Layers, c.Ranks, c.OutputHeads = "gat", 1, 3, 2 }},
		{name: "gatv2 one rank", set: func(c *Config) { c.Model, c.Heads, c.Layers = "gatv2", 2, 2 }},
		{name: "gatv2", directed: true, set: func(c *Config) { c.Model, c.Heads, c.Ranks, c.Layers = "gatv2", 3, 4, 3 }},
		{name: "gatv2 output heads sparse", sparse: true, set: func(c *Config) { c.Model, c.Heads, c.OutputHeads, c.Ranks = "gatv2", 2, 3, 4 }},
		{name: "gatv2 empty partition", lopsided: true, directed: true, set: func(c *Config) { c.Model, c.Heads, c.Ranks, c.Servers = "gatv2", 2, 3, 0 }},
		{name: "weights gatv2", weighted: true, directed: true, set: func(c *Config) { c.Model, c.Heads, c.Ranks, c.Layers = "gatv2", 2, 3, 3 }},
		{name: "edge features gatv2 directed", edgeDim: 3, directed: true, set: func(c *Config) { c.Model, c.Heads, c.Ranks, c.Layers = "gatv2", 2, 3, 3 }},
		{name: "edge features gatv2", edgeDim: 2, set: func(c *Config) { c.Model, c.Heads, c.OutputHeads, c.Ranks = "gatv2", 2, 2, 4 }},
		{name: "edge features gatv2 plain Go", edgeDim: 4, set: func(c *Config) { c.Model, c.Kernel, c.Ranks = "gatv2", "go", 3 }},
		{name: "edge features gatv2 empty partition", edgeDim: 3, lopsided: true, directed: true, set: func(c *Config) { c.Model, c.Heads, c.Ranks, c.Servers = "gatv2", 2, 3, 0 }},
		{name: "edge features gcn", edgeDim: 3, set: func(c *Config) { c.Ranks = 3 }},
		{name: "perceptron", set: func(c *Config) { c.Model, c.Layers, c.Ranks = "mlp", 3, 4 }},
		{name: "sparse perceptron", sparse: true, set: func(c *Config) { c.Model, c.Ranks = "mlp", 3 }},
		{name: "gcnii", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers, c.Alpha = "gcnii", 4, 3, 0.3 }},
		{name: "gcnii sparse no overlap", sparse: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers, c.Mode = "gcnii", 3, 2, "nopipe" }},
		{name: "appnp", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Hops = "appnp", 4, 3 }},
		{name: "appnp sparse empty partition", sparse: true, lopsided: true, set: func(c *Config) { c.Model, c.Ranks, c.Servers, c.Hops = "appnp", 3, 0, 2 }},
		{name: "sgc", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.CacheInput = "sgc", 4, "off" }},
		{name: "sgc kept", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers, c.CacheInput = "sgc", 4, 3, "on" }},
		{name: "sgc kept empty partition", sparse: true, lopsided: true, set: func(c *Config) { c.Model, c.Ranks, c.Servers, c.CacheInput = "sgc", 3, 0, "on" }},
		{name: "sign", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Powers, c.CacheInput = "sign", 3, 2, "off" }},
		{name: "sign kept", directed: true, set: func(c *Config) { c.Model, c.Ranks, c.Powers, c.CacheInput = "sign", 3, 3, "on" }},
		{name: "sign sparse kept", sparse: true, set: func(c *Config) { c.Model, c.Ranks, c.Powers, c.Layers, c.CacheInput = "sign", 4, 2, 3, "on" }},
		{name: "sgc sparse of one step", sparse: true, set: func(c *Config) { c.Model, c.Ranks, c.Layers, c.CacheInput = "sgc", 3, 1, "off" }},
		{name: "gcn add", directed: true, set: func(c *Config) { c.Residual, c.Ranks, c.Layers = "add", 4, 4 }},
		{name: "gcn initial kept", directed: true, set: func(c *Config) {
			c.Residual, c.Ranks, c.Layers, c.Order, c.CacheInput = "initial", 3, 4, "gather-first", "on"
		}},
		{name: "sage add", set: func(c *Config) { c.Model, c.Residual, c.Ranks, c.Layers = "sage", "add", 4, 3 }},
		{name: "gin initial", directed: true, set: func(c *Config) { c.Model, c.Residual, c.Ranks, c.Layers = "gin", "initial", 4, 3 }},
		{name: "gat add", directed: true, set: func(c *Config) { c.Model, c.Heads, c.Residual, c.Ranks, c.Layers = "gat", 2, "add", 4, 3 }},
		{name: "gat initial", set: func(c *Config) { c.Model, c.Heads, c.Residual, c.Ranks, c.Layers = "gat", 2, "initial", 3, 4 }},
		{name: "gcn gelu", directed: true, set: func(c *Config) { c.Activation, c.Ranks, c.Layers = "gelu", 4, 3 }},
		{name: "gat leaky", set: func(c *Config) { c.Model, c.Heads, c.Activation, c.Ranks = "gat", 2, "leaky", 3 }},
		{name: "perceptron elu", sparse: true, set: func(c *Config) { c.Model, c.Activation, c.Ranks = "mlp", "elu", 3 }},
		{name: "gcn prelu", set: func(c *Config) { c.Activation, c.Ranks, c.Layers = "prelu", 4, 3 }},
		{name: "gcn cat", directed: true, set: func(c *Config) { c.Jumping, c.Ranks, c.Layers = "cat", 4, 3 }},
		{name: "sage cat add", set: func(c *Config) { c.Model, c.Jumping, c.Residual, c.Ranks, c.Layers = "sage", "cat", "add", 3, 3 }},
		{name: "gat max batch", directed: true, set: func(c *Config) { c.Model, c.Heads, c.Jumping, c.Norm, c.Ranks = "gat", 2, "max", "batch", 4 }},
		{name: "gcn max of one", sparse: true, set: func(c *Config) { c.Jumping, c.Activation, c.Ranks, c.Layers = "max", "gelu", 3, 1 }},
		{name: "gcn layer", directed: true, set: func(c *Config) { c.Norm, c.Ranks, c.Layers = "layer", 4, 3 }},
		{name: "sage batch", directed: true, set: func(c *Config) { c.Model, c.Norm, c.Ranks, c.Layers = "sage", "batch", 4, 3 }},
		{name: "gcn batch without servers", lopsided: true, set: func(c *Config) { c.Norm, c.Ranks, c.Servers, c.Activation = "batch", 3, 0, "gelu" }},
		{name: "gat batch no overlap", set: func(c *Config) { c.Model, c.Heads, c.Norm, c.Ranks, c.Mode = "gat", 2, "batch", 4, "nopipe" }},
		{name: "sage l2", directed: true, set: func(c *Config) { c.Model, c.Norm, c.Ranks, c.Layers = "sage", "l2", 4, 3 }},
		{name: "sage ball", directed: true, set: func(c *Config) { c.Model, c.Norm, c.Ranks, c.Layers = "sage", "ball", 4, 3 }},
		{name: "sage-max l2 one layer", sparse: true, set: func(c *Config) { c.Model, c.Norm, c.Ranks, c.Layers = "sage-max", "l2", 3, 1 }},
		{name: "sage l2 add gelu", lopsided: true, set: func(c *Config) {
			c.Model, c.Norm, c.Residual, c.Activation, c.Ranks, c.Servers, c.Layers = "sage", "l2", "add", "gelu", 3, 0, 3
		}},
		{name: "gcn l2 cat", directed: true, set: func(c *Config) { c.Norm, c.Jumping, c.Ranks, c.Layers = "l2", "cat", 4, 3 }},
		{name: "gin pair", directed: true, set: func(c *Config) { c.Model, c.Norm, c.Residual, c.Ranks, c.Layers = "gin", "pair", "add", 4, 3 }},
		{name: "perceptron add", set: func(c *Config) { c.Model, c.Residual, c.Layers, c.Ranks = "mlp", "add", 4, 3 }},
	} {
		for seed := range uint64(2) {
			if seed != uint64(k%2) && !hosttest.Big() {
				continue
			}
			t.Run(fmt.Sprintf("%s %d", tc.name, seed), func(t *testing.T) {
				c := quick(t)
				c.Hidden, c.Dropout, c.Epochs, c.Seed = 4, 0, 1, seed+1
				c.Optimizer, c.LR, c.Momentum, c.WeightDecay, c.InnerDecay = "sgd", 1024, 0, 0, 0
				if tc.set != nil {
					tc.set(&c)
				}
				tested[c.Model] = true
				content := smallGraph(tc.directed, tc.sparse, seed)
				if tc.weighted {
					content.Edges = heavy{content.Edges.(graph.EdgePairs)}
				}
				if tc.edgeDim > 0 {
					content.Edges = described{content.Edges.(graph.EdgePairs), tc.edgeDim}
				}
				data := write(t, content)
				if tc.lopsided {
					partitionBy(t, data, "", 3, lopsided()...)
				}
				checkGradient(t, c, content, data)
			})
		}
	}
	for _, kind := range model.Kinds() {
		if !tested[kind] {
			t.Errorf("no gradient of network %s is in the list of this test", kind)
		}
	}
}

func checkGradient(t *testing.T, c Config, content graph.Content, data string) {
	spec := c.Network(content.Features.Dim, content.Classes)
	_, weighted := content.Edges.(graph.WeightedSource)
	if f, ok := content.Edges.(graph.FeaturedSource); ok && spec.Dynamic() {
		spec.Design.EdgeDim = f.EdgeDim()
	} else {
		spec.Design.EdgeFeatures = weighted && spec.Dynamic()
	}
	before := make([]float32, spec.NumWeights())
	spec.Initialize(before, c.Initializer, c.Seed)
	for i := range before {
		before[i] += 0.01 * float32(i%7-3) // biases too should matter
	}
	c.Init = weightsFile(t, spec, before)
	after := train(t, c, data).weights(t, spec)

	ref := newReference(content, spec)
	w := make([]float64, len(before))
	for i, x := range before {
		w[i] = float64(x)
	}
	largest := 0.0
	want := make([]float64, len(w))
	for i := range w {
		const h = 1e-6
		x := w[i]
		w[i] = x + h
		up := ref.loss(w)
		w[i] = x - h
		want[i] = (up - ref.loss(w)) / (2 * h)
		w[i] = x
		largest = max(largest, math.Abs(want[i]))
	}
	for i := range want {
		if stat, ok := ref.running[i]; ok {
			if want := 0.9*w[i] + 0.1*stat; math.Abs(float64(after[i])-want) > 1e-6*(1+math.Abs(want)) {
				t.Errorf("running weight %d is %g, want %g", i, after[i], want)
			}
			continue
		}
		got := (float64(before[i]) - float64(after[i])) / c.LR
		if d := math.Abs(got - want[i]); !(d <= 2e-6*largest+1e-8) {
			t.Errorf("weight %d: gradient %.9g, want %.9g (difference %.2g, largest gradient %.2g)", i, got, want[i], d, largest)
		}
	}
	if largest < 1e-3 {
		t.Errorf("the largest gradient is %g: the test shows nothing", largest)
	}
}
