package model

import (
	"slices"

	"siafu/internal/size"
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
	Inner      bool // of a layer with its own weight decay (Kind.Inner)
	Features   bool // it multiplies the features
	Fixed      bool // no step changes it: it has no gradient, because column means are subtracted after it
	Running    bool // w becomes (1-Momentum) w + Momentum times its gradient (Kind.Running)
}

// Len returns the number of floats of p, or size.Most on overflow.
func (p Param) Len() int { return size.Product(p.Rows, p.Cols) }

// Of returns p's part of a flat vector.
func (p Param) Of(flat []float32) []float32 { return flat[p.Offset : p.Offset+p.Len()] }

// In returns p [Rows x Cols] in a flat vector [weights x 1] of an Ops.
func (p Param) In(flat kernels.Mat) kernels.Mat {
	return flat.Part(p.Offset, p.Offset+p.Len()).Reshape(p.Rows, p.Cols)
}

// Params returns the layout of a spec's weights: layer by layer, then its Head's.
func (s Spec) Params() []Param {
	var params []Param
	for _, layer := range s.layout() {
		params = append(params, layer...)
	}
	return append(params, s.head(s.HeadRange().Lo)...)
}

// layout returns Params layer by layer, without the Head.
func (s Spec) layout() [][]Param {
	layers, offset := make([][]Param, s.Layers()), 0
	parts := s.parts()
	for l, part := range parts {
		outer := l == 0 // until the first bias: later matrices multiply the layer's own values
		shapes := part.kind.Weights(s, l)
		for i, w := range shapes {
			outer = outer && !w.Bias
			p := Param{
				Name: part.Prefix + "." + w.Name, Layer: l, Rows: w.Rows, Cols: w.Cols, Offset: offset, Bias: w.Bias,
				Inner: part.kind.Inner, Features: (outer || l == 0 && w.Name == selfWeight) && w.Rows == s.Dims[0],
				Running: slices.Contains(part.kind.Running, w.Name),
				Fixed:   w.Bias && i == len(shapes)-1 && l+1 < len(parts) && parts[l+1].Kind == "norm" && s.Sums(),
			}
			layers[l] = append(layers[l], p)
			offset = size.Sum(offset, p.Len())
		}
	}
	return layers
}

// ScaleInput multiplies the weights of features by scale: the network then behaves as before
// on features scale times as large.
func (s Spec) ScaleInput(flat []float32, scale float64) {
	if scale == 1 {
		return
	}
	for _, p := range s.layout()[0] {
		if p.Features {
			kernels.ScaleRow(p.Of(flat), float32(scale))
		}
	}
}

// NumWeights returns the length of the flat vector, or size.Most on overflow.
func (s Spec) NumWeights() int {
	n := 0
	for l, part := range s.parts() {
		for _, w := range part.kind.Weights(s, l) {
			n = size.Sum(n, size.Product(w.Rows, w.Cols))
		}
	}
	for _, w := range s.headShapes() {
		n = size.Sum(n, size.Product(w.Rows, w.Cols))
	}
	return n
}

// Range is the part Lo..Hi of the flat vector.
type Range struct{ Lo, Hi int }

// LayerRanges returns the ranges of the layers in the flat vector. The Head belongs to the
// last layer.
func (s Spec) LayerRanges() []Range {
	ranges, at := make([]Range, s.Layers()), 0
	for l, layer := range s.layout() {
		ranges[l] = Range{at, at}
		for _, p := range layer {
			at = p.Offset + p.Len()
		}
		ranges[l].Hi = at
	}
	ranges[len(ranges)-1].Hi = s.HeadRange().Hi
	return ranges
}
