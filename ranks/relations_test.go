package ranks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/graph"
	"siafu/kernels/model"
)

// related yields edges with relations.
type related [][3]uint32

func (e related) Each(yield func(src, dst uint32) error) error {
	return e.EachRelation(func(s, d uint32, _ uint16) error { return yield(s, d) })
}

func (e related) EachRelation(yield func(src, dst uint32, relation uint16) error) error {
	for _, x := range e {
		if err := yield(x[0], x[1], uint16(x[2])); err != nil {
			return err
		}
	}
	return nil
}

// relatedGraph returns a random relational graph of 18 vertices of three kinds, of which the first has
// labels. It has isolated vertices, and edges of several relations between two vertices. Relation
// 1 has no edges, relation 3 one. Features are in blocks.
func relatedGraph(relations int, sparse bool, seed uint64) graph.Content {
	const n, dim, classes = 18, 7, 3
	rng := rand.New(rand.NewPCG(seed, uint64(relations)))
	of := &graph.Relations{Kinds: []graph.VertexKind{{Name: "paper", Vertices: 9, Features: 3},
		{Name: "author", Vertices: 7, FirstFeature: 3, Features: 2}, {Name: "venue", Vertices: 2, FirstFeature: 5, Features: 2}}}
	c := graph.Content{Name: "related", Vertices: n, Classes: classes, Relations: of,
		Features: graph.Features{Rows: n, Dim: dim, Dense: make([]float32, n*dim)}, Labels: make([]int32, n), Split: make([]uint8, n)}
	for v := range n {
		kind := of.Kinds[of.KindOf(int64(v))]
		for j := kind.FirstFeature; j < kind.FirstFeature+kind.Features; j++ {
			if !sparse || rng.IntN(2) == 0 {
				c.Features.Dense[v*dim+j] = float32(rng.NormFloat64())
			}
		}
		if c.Labels[v] = -1; kind.Name == "paper" {
			c.Labels[v], c.Split[v] = rng.Int32N(classes), uint8(v%2)
		}
	}
	var edges related
	vertex := func(kind int) uint32 { // the last vertex of a kind is isolated
		return uint32(of.First(kind)) + rng.Uint32N(uint32(of.Kinds[kind].Vertices-1))
	}
	for r := range uint32(relations) {
		from, to := int(r)%2, int(r+1)/2%3
		of.Relations = append(of.Relations, graph.Relation{Name: fmt.Sprint("r", r), From: from, To: to, Inverse: -1})
		count := 14
		if few, ok := map[uint32]int{1: 0, 3: 1}[r]; ok {
			count = few
		}
		for range count {
			if e := [3]uint32{vertex(from), vertex(to), r}; e[0] != e[1] && !slices.Contains(edges, e) {
				edges = append(edges, e)
			}
		}
	}
	c.Edges = edges
	return c
}

// relationMeans returns D_r^-1 A_r of each relation; one relation if the graph is not relational.
func relationMeans(c graph.Content) (all [][][]float64) {
	n := int(c.Vertices)
	add := func(s, d uint32, r uint16) error {
		for int(r) >= len(all) {
			all = append(all, square(n))
		}
		all[r][d][s] = 1
		return nil
	}
	if e, ok := c.Edges.(graph.RelatedSource); ok {
		all = make([][][]float64, len(c.Relations.Relations))
		for r := range all {
			all[r] = square(n)
		}
		e.EachRelation(add)
	} else {
		c.Edges.Each(func(s, d uint32) error {
			if c.Symmetrise {
				add(d, s, 0)
			}
			return add(s, d, 0)
		})
	}
	for _, a := range all {
		for _, row := range a {
			sum := 0.0
			for _, x := range row {
				sum += x
			}
			for u := range row {
				row[u] /= max(sum, 1)
			}
		}
	}
	return all
}

// relational computes a layer of rgcn.
func (r *reference) relational(h [][]float64, matrix func(i int) [][]float64, params []model.Param, relu bool) [][]float64 {
	in, d, last := len(h[0]), r.spec.Design, len(params)-1
	sum := product(h, matrix(last-1))
	for k, a := range r.means {
		w := make([][]float64, in)
		for i := range w {
			w[i] = make([]float64, len(sum[0]))
			switch {
			case d.Bases > 0:
				for b, x := range matrix(1)[k] {
					for j, v := range matrix(0)[b*in+i] {
						w[i][j] += x * v
					}
				}
			case d.Blocks > 0:
				row := matrix(0)[k*in+i]
				copy(w[i][i/(in/d.Blocks)*len(row):], row)
			default:
				copy(w[i], matrix(0)[k*in+i])
			}
		}
		sum = plus(sum, product(product(a, h), w))
	}
	return affine(sum, matrix(last)[0], relu)
}

// TestOneRelationIsSAGE: with one relation, rgcn without projection is sage. The first loss of one rank has the same bits.
// The gradient of W is Hᵀ(ĀᵀG) in rgcn and (ĀH)ᵀG in sage, so that the order of sums differs.
func TestOneRelationIsSAGE(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for _, ranks := range []int{1, 3} {
		c := quick(t)
		c.Model, c.Order, c.CacheInput, c.Ranks, c.Epochs, c.Layers = "sage", "gather-first", "off", ranks, 5, 3
		want := train(t, c, data).losses()
		c.Model, c.Project, c.Out = "rgcn", "off", c.Out+"2"
		got := train(t, c, data).losses()
		sameLosses(t, fmt.Sprint(ranks, " ranks"), got, want, 1e-6)
		if ranks == 1 && got[0] != want[0] {
			t.Errorf("the first loss is %v, of sage %v", got[0], want[0])
		}
	}
}

// attentionOfRelations computes a layer of hgn or rgat.
func (r *reference) attentionOfRelations(kind string, h [][]float64, matrix func(i int) [][]float64, params []model.Param,
	last, elu bool) [][]float64 {
	heads, self := r.spec.Heads, len(r.means)
	if last {
		heads = max(r.spec.OutputHeads, 1)
	}
	w, source, target := matrix(0), matrix(1), matrix(2)
	width := len(source[0])
	z := make([][][]float64, self+1)
	for k := range z {
		if z[k] = product(h, w[:len(h[0])]); kind == "rgat" {
			z[k] = product(h, w[k*len(h[0]):(k+1)*len(h[0])])
		}
	}
	score := func(k, head, u, v int) (s float64) {
		at := head
		if kind == "rgat" {
			at += k * heads
		} else {
			s = matrix(3)[k][head]
		}
		for j := range width {
			s += z[k][u][head*width+j]*source[at][j] + z[k][v][head*width+j]*target[at][j]
		}
		return math.Exp(max(s, 0.2*s))
	}
	// The attention of the layer before is a constant in the gradient: that of the first weights.
	layer, beta, before := params[0].Layer, r.spec.Design.EdgeResidual, map[[4]int]float64(nil)
	for at := layer - 1; at >= 0 && before == nil; at-- {
		before = r.attention[at]
	}
	if before == nil || last {
		beta = 0
	}
	constant, known := r.attention[layer]
	if !known {
		constant = map[[4]int]float64{}
		r.attention[layer] = constant
	}
	out := make([][]float64, len(h))
	for v := range h {
		all := make([]float64, heads*width)
		for head := range heads {
			sums, row := make([]float64, self+1), all[head*width:(head+1)*width]
			each := func(do func(k, u int)) {
				for k := range z {
					for u := range h {
						if k == self && u == v || k < self && r.means[k][v][u] > 0 {
							do(k, u)
						}
					}
				}
			}
			softmax := func(k int) *float64 { // of relation k
				if r.spec.Design.RelationSoftmax {
					return &sums[k]
				}
				return &sums[0]
			}
			each(func(k, u int) { *softmax(k) += score(k, head, u, v) })
			each(func(k, u int) {
				edge := [4]int{k, head, u, v}
				weight := (1-beta)*score(k, head, u, v) / *softmax(k) + beta*before[edge]
				if r.spec.Design.EdgeResidual > 0 && !known {
					constant[edge] = weight
				}
				for j := range width {
					row[j] += weight * z[k][u][head*width+j]
				}
			})
		}
		if out[v] = all; last {
			out[v] = make([]float64, width)
			for i, x := range all {
				out[v][i%width] += x / float64(heads)
			}
		}
	}
	if first := params[0].Layer == 0 || r.spec.Design.Project && params[0].Layer == 1; kind == "hgn" && !first {
		residual := h
		if len(params) == 6 {
			residual = product(h, matrix(4))
		}
		out = plus(out, residual)
	}
	out = affine(out, matrix(len(params) - 1)[0], false)
	switch {
	case last && kind == "hgn":
		return unit(out, 1e-12)
	case elu:
		return activated(out, func(x float64) float64 { return max(x, 0) + math.Expm1(min(x, 0)) })
	}
	return out
}
