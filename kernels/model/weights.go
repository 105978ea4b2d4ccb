package model

import (
	"fmt"
	"slices"

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

// Params lays out the weights of a spec, layer after layer.
func (s Spec) Params() []Param {
	var params []Param
	offset := 0
	for l := range s.Layers() {
		for _, w := range s.kind().Weights(s, l) {
			p := Param{fmt.Sprintf("layers.%d.%s", l, w.Name), l, w.Rows, w.Cols, offset, w.Bias}
			params = append(params, p)
			offset += p.Len()
		}
	}
	return params
}

// layerParams are those of layer l.
func (s Spec) layerParams(l int) []Param {
	return slices.DeleteFunc(s.Params(), func(p Param) bool { return p.Layer != l })
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
	layer, matrix := -1, 0
	for _, p := range s.Params() {
		w := p.Of(flat)
		if p.Layer != layer {
			layer, matrix = p.Layer, 0
		}
		stream := p.Layer + matrix<<16 // no two matrices draw the same
		switch {
		case p.Bias:
			clear(w)
			continue
		case initializer == "he":
			kernels.He(w, p.Rows, p.Cols, seed, stream)
		default:
			kernels.Xavier(w, p.Rows, p.Cols, seed, stream)
		}
		matrix++
	}
}
