package model

import (
	"fmt"

	"siafu/kernels"
)

// Head scores pairs of rows of the network's output, where their dot product does not: a
// perceptron on their Hadamard product, whose hidden layers have ReLUs and whose last one
// has one column.
//
//	score(x, y) = f_L(… f_1(x ∘ y)),  f_l(h) = dropout(relu(h W_l + b_l)),  f_L(h) = h W_L + b_L
//
// It is LinkPredictor of the examples of the Open Graph Benchmark for link prediction (Hu et
// al. 2020). Its weights are the last ones of the flat vector, and
// belong to the last layer.
//
// A Head has the pairs in hand of one worker, at most so many as it was made for.
type Head struct {
	team   *kernels.Team
	drop   kernels.PairDropout // of the last Scores
	params []Param             // by twos, [in x out] and [1 x out]
	n      int
	width  int
	values [][]float32 // the input of each of its layers [pairs x in], and the scores
	slopes [][]float32 // of these
}

// mostScoreLayers is more than anybody has use for.
const mostScoreLayers = 64

// headPrefix begins the names of its weights.
const headPrefix = "score"

// headShapes are its weights.
func (s Spec) headShapes() (list []Shape) {
	in := s.Dims[s.Layers()]
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

// HeadRange is where its weights are in the flat vector: empty without one.
func (s Spec) HeadRange() Range {
	r := Range{Hi: s.NumWeights()}
	r.Lo = r.Hi
	for _, p := range s.head(0) {
		r.Lo -= p.Len()
	}
	return r
}

// head are its weights from an offset on.
func (s Spec) head(offset int) (params []Param) {
	for _, w := range s.headShapes() {
		params = append(params, Param{Name: headPrefix + "." + w.Name, Layer: s.Layers() - 1, Rows: w.Rows, Cols: w.Cols, Offset: offset, Bias: w.Bias})
		offset += w.Rows * w.Cols
	}
	return params
}

// NewHead is that of a spec with one for at most N pairs, computed by a team.
func (s Spec) NewHead(team *kernels.Team, pairs int) *Head {
	h := &Head{team: team, params: s.head(0), width: s.Dims[s.Layers()]}
	room := func(cols int) {
		h.values, h.slopes = append(h.values, make([]float32, pairs*cols)), append(h.slopes, make([]float32, pairs*cols))
	}
	for l := 0; l < len(h.params); l += 2 {
		room(h.params[l].Rows)
	}
	room(1)
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

// Scores are those of the pairs of rows that x and y give, until the next call. weights is
// the part of the flat vector in HeadRange. drop, whose Layer it counts, is that of a training
// pass, and has the ids of the pairs.
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

// Grad adds to grad, of the weights, what comes of the slopes of the last Scores, and gives
// the gradient of the products of rows [pairs x width], until the next call.
func (h *Head) Grad(grad, weights, slopes []float32) []float32 {
	last := len(h.params)/2 - 1
	copy(h.slopes[last+1], slopes)
	for l := last; l >= 0; l-- {
		g := h.mat(h.slopes, l+1)
		if l < last {
			// What is 0 has been let through by neither ReLU nor dropout.
			h.team.BiasReLUDropoutGrad(g, kernels.Mat{}, g, h.mat(h.values, l+1), true, &kernels.Dropout{P: h.drop.P})
		}
		h.team.MatMulTransA(h.weight(l, grad), h.mat(h.values, l), g, true)
		h.team.ColumnSums(h.bias(l, grad), g, true)
		h.team.MatMulTransB(h.mat(h.slopes, l), g, h.weight(l, weights), false)
	}
	return h.slopes[0][:h.n*h.width]
}

// PairDropout is what a pass drops of the hidden layers of Head, without the pairs.
func (s Spec) PairDropout(p Pass) kernels.PairDropout {
	if !p.Train {
		return kernels.PairDropout{}
	}
	return kernels.PairDropout{Seed: s.Seed, Epoch: p.Epoch, P: s.ScoreDropout}
}

// mat is the values or slopes in front of layer l, or of the scores.
func (h *Head) mat(of [][]float32, l int) kernels.Mat {
	cols := 1
	if 2*l < len(h.params) {
		cols = h.params[2*l].Rows
	}
	return kernels.HostMat(h.n, cols, of[l])
}

func (h *Head) weight(l int, flat []float32) kernels.Mat {
	p := h.params[2*l]
	return kernels.HostMat(p.Rows, p.Cols, p.Of(flat))
}

func (h *Head) bias(l int, flat []float32) kernels.Mat {
	p := h.params[2*l+1]
	return kernels.HostMat(p.Rows, p.Cols, p.Of(flat))
}
