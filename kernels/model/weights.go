package model

import (
	"fmt"

	"siafu/kernels"
)

// Param is one weight matrix or bias in a flat vector of weights: the
// [Rows x Cols] floats from Offset on.
type Param struct {
	Name       string
	Layer      int
	Rows, Cols int
	Offset     int
	Bias       bool
}

// Len is the number of floats of p.
func (p Param) Len() int { return p.Rows * p.Cols }

// Of is p's view of a flat vector.
func (p Param) Of(flat []float32) []float32 { return flat[p.Offset : p.Offset+p.Len()] }

// Params lays out the weights of a spec: for each layer its matrix
// [in x out] and then its bias [1 x out].
func (s Spec) Params() []Param {
	var params []Param
	offset := 0
	add := func(name string, layer, rows, cols int, bias bool) {
		params = append(params, Param{name, layer, rows, cols, offset, bias})
		offset += rows * cols
	}
	for l := range s.Layers() {
		in, out := s.Dims[l], s.Dims[l+1]
		add(fmt.Sprintf("layers.%d.weight", l), l, in, out, false)
		add(fmt.Sprintf("layers.%d.bias", l), l, 1, out, true)
	}
	return params
}

// NumWeights is the length of the flat vector.
func (s Spec) NumWeights() int {
	n := 0
	for _, p := range s.Params() {
		n += p.Len()
	}
	return n
}

// LayerRange is the part lo..hi of the flat vector that belongs to layer l.
func (s Spec) LayerRange(l int) (lo, hi int) {
	lo = -1
	for _, p := range s.Params() {
		if p.Layer != l {
			continue
		}
		if lo < 0 {
			lo = p.Offset
		}
		hi = p.Offset + p.Len()
	}
	return lo, hi
}

// Initialize fills a flat vector with random matrices, "xavier" (Glorot &
// Bengio 2010) or "he" (He et al. 2015), and zero biases. It depends on the
// seed and the shapes only.
func (s Spec) Initialize(flat []float32, initializer string, seed uint64) {
	for _, p := range s.Params() {
		w := p.Of(flat)
		switch {
		case p.Bias:
			clear(w)
		case initializer == "he":
			kernels.He(w, p.Rows, p.Cols, seed, p.Layer)
		default:
			kernels.Xavier(w, p.Rows, p.Cols, seed, p.Layer)
		}
	}
}
