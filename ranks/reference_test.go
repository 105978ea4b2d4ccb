package ranks

import (
	"cmp"
	"math"
	"strings"

	"siafu/graph"
	"siafu/kernels/model"
)

// reference is a second implementation of every kind of network, in float64 with dense
// matrices and without gradients. The gradients of a whole distributed run are compared with
// central differences of its loss.
type reference struct {
	content graph.Content
	spec    model.Spec
	a       [][]float64 // Â
	x       [][]float64
	// features of edges, and their means for self loops: from the dataset, or its weights.
	features  [][][]float64
	running   map[int]float64            // inputs of running means, by weight
	kinds     map[string][][]float64     // Â by kind of layer
	means     [][][]float64              // D_r^-1 A_r by relation
	attention map[int]map[[4]int]float64 // of the first weights, by layer, and by relation, head, source and destination
}

func newReference(c graph.Content, s model.Spec) *reference {
	n := int(c.Vertices)
	r := &reference{content: c, spec: s, a: square(n), x: make([][]float64, n), running: map[int]float64{}, kinds: map[string][][]float64{}}
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
	}
	edges := r.a
	r.means, r.attention = relationMeans(c), map[int]map[[4]int]float64{}
	for _, kind := range append(strings.Split(s.Design.Kinds, ","), s.Kind) {
		r.kinds[kind] = square(n)
		for v := range n {
			for u := range n {
				r.kinds[kind][v][u] = coefficient(kind, edges[v][u], v == u, in[v], out[u])
			}
		}
	}
	r.a = r.kinds[s.Kind]
	if s.Design.EdgeDim > 0 {
		r.features = meanFeatures(c)
	}
	return r
}

// referenceKinds are the networks of this reference. Others have TestGradient of kernels/model.
var referenceKinds = []string{"rgcn", "hgn", "rgat", "gcn", "sage", "sage-max", "sage-pool", "gin", "gat", "gatv2", "mlp", "gcnii", "appnp",
	"sgc", "sign"}

// coefficient returns the entry of Â for an edge (1, or its weight) or no edge (0) between
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

// part computes a layer of a network with different layers, from the earlier layers' outputs.
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
	case "rgcn":
		return r.relational(h, matrix, params, !p.Plain)
	case "hgn", "rgat":
		return r.attentionOfRelations(p.Kind, h, matrix, params, last, !p.Plain)
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
	return r.layer(p.Kind, r.kinds[p.Kind], h, params, w, !p.Plain)
}

// normalised returns h with normalised rows or columns.
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

// unit returns rows divided by their norms, or by the least allowed norm.
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

// layer computes one layer with the weights of params, in their order.
func (r *reference) layer(kind string, a, h [][]float64, params []model.Param, w []float64, relu bool) [][]float64 {
	matrix := func(i int) [][]float64 {
		p := params[i]
		m := make([][]float64, p.Rows)
		for j := range m {
			m[j] = w[p.Offset+j*p.Cols : p.Offset+(j+1)*p.Cols]
		}
		return m
	}
	switch kind {
	case "sage-pool":
		pooled := affine(product(h, matrix(0)), matrix(1)[0], true)
		return affine(plus(product(h, matrix(2)), product(r.maxima(pooled), matrix(3))), matrix(4)[0], relu)
	case "sage-max":
		return affine(plus(product(r.maxima(h), matrix(0)), product(h, matrix(1))), matrix(2)[0], relu)
	case "sage":
		z := plus(product(a, product(h, matrix(0))), product(h, matrix(1)))
		return affine(z, matrix(2)[0], relu)
	case "gin":
		inner := affine(product(a, product(h, matrix(0))), matrix(1)[0], true)
		return affine(product(inner, matrix(2)), matrix(3)[0], relu)
	}
	return affine(product(a, product(h, matrix(0))), matrix(1)[0], relu)
}

// maxima returns the column maxima of in-neighbours' rows.
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

// attentive computes an attention layer over rows z, with the heads and width of shape. Head
// k's scores are functions of the columns of z[u] and y[v] and of the edge weight. Hidden
// layers have ELU and concatenate heads; the last takes their mean.
func (r *reference) attentive(z, shape [][]float64, bias []float64, score func(k int, z, y, features []float64) float64, y [][]float64,
	hidden, elu bool) [][]float64 {
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

// logits returns the output of the network. enter, if any, may replace the input of each layer.
func (r *reference) logits(w []float64, enter func(l int, h [][]float64) [][]float64) [][]float64 {
	h := r.x
	var outputs [][][]float64
	for l, part := range r.spec.Parts() {
		if enter != nil {
			h = enter(l, h)
		}
		var params []model.Param
		for _, p := range r.spec.Params() {
			if p.Layer == l {
				params = append(params, p)
			}
		}
		h = r.part(part, h, outputs, params, w, l == r.spec.Layers()-1)
		outputs = append(outputs, h)
	}
	return h
}

// loss returns the mean cross entropy over the training vertices.
func (r *reference) loss(w []float64) float64 {
	train := make([]bool, len(r.x))
	for v := range train {
		train[v] = r.content.Split[v] == graph.SplitTrain
	}
	sum, count := r.crossEntropy(r.logits(w, nil), train)
	return sum / count
}

// crossEntropy returns the sum of the cross entropy over some vertices, and their number.
func (r *reference) crossEntropy(logits [][]float64, of []bool) (sum, count float64) {
	for v, label := range r.content.Labels {
		if of[v] {
			z := 0.0
			for _, x := range logits[v] {
				z += math.Exp(x)
			}
			sum += math.Log(z) - logits[v][label]
			count++
		}
	}
	return sum, count
}
