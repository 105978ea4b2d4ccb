package model

import (
	"fmt"

	"siafu/kernels"
)

// Head scores pairs of rows of the network's output, as an alternative to the dot product: a
// perceptron on their Hadamard product. Its hidden layers have ReLUs and its last layer has
// one column.
//
//	score(x, y) = f_L(… f_1(x ∘ y)),  f_l(h) = dropout(relu(h W_l + b_l)),  f_L(h) = h W_L + b_L
//
// It is LinkPredictor of the examples of the Open Graph Benchmark for link prediction (Hu et
// al. 2020). Its weights are the last ones of the flat vector, and
// belong to the last layer.
//
// A Head has the current pairs of one worker, up to the number given to NewHead.
type Head struct {
	team   *kernels.Team
	drop   kernels.PairDropout // of the last Scores
	params []Param             // in pairs, [in x out] and [1 x out]
	n      int
	width  int
	values [][]float32 // the input of each layer of the Head [pairs x in], and the scores
	slopes [][]float32 // gradients of values
}

// mostScoreLayers is a generous upper bound.
const mostScoreLayers = 64

// headPrefix is the prefix of the names of a Head's weights.
const headPrefix = "score"

// headShapes returns the shapes of the weights of the Head, or of the TripleScore.
func (s Spec) headShapes() (list []Shape) {
	in := s.Dims[s.Layers()]
	if s.Design.Score != "" {
		return []Shape{{"relations", s.Design.ScoreRelations, in, false}}
	}
	for l := range s.Design.ScoreLayers {
		out := s.Design.ScoreHidden
		if l == s.Design.ScoreLayers-1 {
			out = 1
		}
		list = append(list, Shape{fmt.Sprintf("%d.weight", l), in, out, false}, Shape{fmt.Sprintf("%d.bias", l), 1, out, true})
		in = out
	}
	return list
}

// HeadRange returns the range of the weights of the Head, or of the TripleScore, in the flat vector. It is empty
// without weights.
func (s Spec) HeadRange() Range {
	r := Range{Hi: s.NumWeights()}
	r.Lo = r.Hi
	for _, p := range s.head(0) {
		r.Lo -= p.Len()
	}
	return r
}

// head returns the weights of the Head, which begin at an offset of the flat vector.
func (s Spec) head(offset int) (params []Param) {
	for _, w := range s.headShapes() {
		params = append(params, Param{Name: headPrefix + "." + w.Name, Layer: s.Layers() - 1, Rows: w.Rows, Cols: w.Cols,
			Offset: offset, Bias: w.Bias})
		offset += w.Rows * w.Cols
	}
	return params
}

// NewHead makes the Head of a spec for at most the given number of pairs, computed by a team.
func (s Spec) NewHead(team *kernels.Team, pairs int) *Head {
	h := &Head{team: team, params: s.head(0), width: s.Dims[s.Layers()]}
	alloc := func(cols int) {
		h.values, h.slopes = append(h.values, make([]float32, pairs*cols)), append(h.slopes, make([]float32, pairs*cols))
	}
	for l := 0; l < len(h.params); l += 2 {
		alloc(h.params[l].Rows)
	}
	alloc(1)
	return h
}

// HeadFloats returns the number of floats that NewHead allocates.
func (s Spec) HeadFloats(pairs int) (n int64) {
	for _, w := range s.headShapes() {
		if !w.Bias {
			n += 2 * int64(pairs) * int64(w.Rows)
		}
	}
	return n + 2*int64(pairs)
}

// Scores returns the scores of the pairs of rows x(i), y(i). The result is valid until the
// next call. weights is the part HeadRange of the flat vector. drop is the dropout of a
// training pass, with the ids of the pairs; Scores sets its Layer.
func (h *Head) Scores(weights []float32, n int, x, y func(i int) []float32, drop kernels.PairDropout) []float32 {
	h.n, h.drop = n, drop
	for i := range n {
		to, a, b := h.values[0][i*h.width:(i+1)*h.width], x(i), y(i)
		for j := range to {
			to[j] = a[j] * b[j]
		}
	}
	last := len(h.params)/2 - 1
	for l := range last + 1 {
		w, b := h.weight(l, weights), h.bias(l, weights)
		to := h.mat(h.values, l+1)
		h.team.MatMulBiasReLUDropout(to, h.mat(h.values, l), w, b, l < last, nil)
		if drop.Layer = l; l < last {
			h.team.DropPairs(to, drop)
		}
	}
	return h.values[last+1][:n]
}

// Grad adds the gradient of the weights to grad, given the gradients slopes of the latest
// Scores. It returns the gradient of the products of rows [pairs x width], valid until the
// next call.
func (h *Head) Grad(grad, weights, slopes []float32) []float32 {
	last := len(h.params)/2 - 1
	copy(h.slopes[last+1], slopes)
	for l := last; l >= 0; l-- {
		g := h.mat(h.slopes, l+1)
		if l < last {
			// Elements that ReLU or dropout removed are 0.
			h.team.BiasReLUDropoutGrad(g, kernels.Mat{}, g, h.mat(h.values, l+1), true, &kernels.Dropout{P: h.drop.P})
		}
		h.team.MatMulTransA(h.weight(l, grad), h.mat(h.values, l), g, true)
		h.team.ColumnSums(h.bias(l, grad), g, true)
		h.team.MatMulTransB(h.mat(h.slopes, l), g, h.weight(l, weights), false)
	}
	return h.slopes[0][:h.n*h.width]
}

// PairDropout returns the dropout of Head's hidden layers in a pass, without the pairs.
func (s Spec) PairDropout(p Pass) kernels.PairDropout {
	if !p.Train {
		return kernels.PairDropout{}
	}
	return kernels.PairDropout{Seed: s.Seed, Epoch: p.Epoch, P: s.ScoreDropout}
}

// mat returns the input values or slopes of layer l, or of the scores.
func (h *Head) mat(of [][]float32, l int) kernels.Mat {
	cols := 1
	if 2*l < len(h.params) {
		cols = h.params[2*l].Rows
	}
	return kernels.HostMat(h.n, cols, of[l])
}

// weight and bias return the weights of layer l, or their gradients, in a flat vector.
func (h *Head) weight(l int, flat []float32) kernels.Mat { return h.params[2*l].host(flat) }
func (h *Head) bias(l int, flat []float32) kernels.Mat   { return h.params[2*l+1].host(flat) }

func (p Param) host(flat []float32) kernels.Mat { return kernels.HostMat(p.Rows, p.Cols, p.Of(flat)) }
