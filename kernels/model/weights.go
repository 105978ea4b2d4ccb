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
	Inner      bool // of a layer that has a weight decay of its own (Kind.Inner)
	Features   bool // it multiplies the features
	Fixed      bool // no step changes it: means of columns, which are taken away after it, leave it no gradient
	Running    bool // w becomes (1-Momentum) w + Momentum times its gradient (Kind.Running)
}

// Len is the number of floats of p, size.Most where no number holds it.
func (p Param) Len() int { return size.Product(p.Rows, p.Cols) }

// Of is p's view of a flat vector.
func (p Param) Of(flat []float32) []float32 { return flat[p.Offset : p.Offset+p.Len()] }

// In is p [Rows x Cols] in a flat vector [weights x 1] where an Ops computes.
func (p Param) In(flat kernels.Mat) kernels.Mat {
	return flat.Part(p.Offset, p.Offset+p.Len()).Reshape(p.Rows, p.Cols)
}

// Params lays out the weights of a spec, layer after layer, and at last those of its Head.
func (s Spec) Params() []Param {
	var params []Param
	for _, layer := range s.layout() {
		params = append(params, layer...)
	}
	if s.Design.ScoreLayers > 0 {
		params = append(params, s.head(s.HeadRange().Lo)...)
	}
	return params
}

// layout is Params, layer by layer, without the Head.
func (s Spec) layout() [][]Param {
	layers, offset := make([][]Param, s.Layers()), 0
	parts := s.parts()
	for l, part := range parts {
		outer := l == 0 // until the first bias: what a layer multiplies after it is its own
		shapes := part.kind.Weights(s, l)
		for i, w := range shapes {
			outer = outer && !w.Bias
			p := Param{
				Name: part.Prefix + "." + w.Name, Layer: l, Rows: w.Rows, Cols: w.Cols, Offset: offset, Bias: w.Bias,
				Inner: part.kind.Inner, Features: (outer || l == 0 && w.Name == selfWeight) && w.Rows == s.Dims[0], Running: slices.Contains(part.kind.Running, w.Name),
				Fixed: w.Bias && i == len(shapes)-1 && l+1 < len(parts) && parts[l+1].Kind == "norm" && s.Sums(),
			}
			layers[l] = append(layers[l], p)
			offset = size.Sum(offset, p.Len())
		}
	}
	return layers
}

// ScaleInput multiplies the weights that features are multiplied with: the network of the
// flat vector is then what it was for features scale times as large.
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

// NumWeights is the length of the flat vector, size.Most where no number holds
// it.
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

// LayerRanges are the parts of the flat vector that belong to the layers, those of the Head to
// the last one.
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
