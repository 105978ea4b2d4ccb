package model

import (
	"cmp"

	"siafu/kernels"
)

// Auto names the default initialiser of the kind of network.
const Auto = "auto"

// Initializers returns the names of random initial weights.
//
//	xavier        matrices as Glorot & Bengio 2010, biases zero
//	he            matrices as He et al. 2015, biases zero
//	torch         matrices and biases as PyTorch's Linear
//	small-logits  torch, but a tenth of it in the product that makes the logits
//
// The first steps of Adam move every weight by the learning rate, whatever the size of its
// gradient. If features have one sign, a hidden unit moves by the learning rate times their
// sum, in the same direction for all vertices. Large initial logits determine this direction,
// because they are wrong in the same way for all vertices. Small logits have errors that
// differ between vertices. They must not be zero: then all units would move alike.
func Initializers() []string { return []string{"xavier", "he", "torch", "small-logits"} }

// Initializer returns the name of an initialiser; for Auto, the default of the kind of network.
func (s Spec) Initializer(name string) string {
	if name == Auto {
		return cmp.Or(s.kind().Initializer, "small-logits")
	}
	return name
}

// Initialize fills a flat vector with the random initial weights of a named initialiser, or
// Auto. They depend only on the seed and the shapes.
func (s Spec) Initialize(flat []float32, initializer string, seed uint64) {
	name := s.Initializer(initializer)
	for _, w := range s.allInitialWeights() {
		n := w.Rows * w.Cols
		w.draw(flat[:n], name, seed)
		flat = flat[n:]
	}
}

// biasStream separates the random numbers of a bias from those of a matrix with the same
// number.
const biasStream = 1 << 15

// initialWeight is a weight before the first epoch.
type initialWeight struct {
	Shape
	inputs int  // of the product that it belongs to
	logits bool // the product is the network's last
	stream int  // of random numbers: different for all weights of a network
	stack  int  // number of matrices, one below the other, each with its own stream
	starts bool // with a value
	value  float32
}

// allInitialWeights returns all weights in the order of the flat vector.
func (s Spec) allInitialWeights() []initialWeight {
	var all []initialWeight
	inputs, logits := 0, 0 // of the current product, and its start
	parts := append(s.parts(), Part{kind: &Kind{Weights: func(s Spec, _ int) []Shape { return s.headShapes() }}})
	for l, part := range parts {
		matrices := 0
		stacked := func(w Shape) int {
			if part.kind.Stacked == nil {
				return 1
			}
			return part.kind.Stacked(s, w.Name)
		}
		for _, product := range products(part.kind.Weights(s, l)) {
			if !product[0].Bias { // else the bias belongs to an earlier product
				inputs, logits = product[0].Rows/stacked(product[0]), len(all)
			} else if matrices > 0 { // another bias has the same number
				matrices++
			}
			for _, w := range product {
				f := initialWeight{Shape: w, inputs: inputs, stream: l + matrices<<16, stack: stacked(w)}
				if w.Name == combinationName {
					f.inputs = w.Cols
				}
				f.value, f.starts = part.kind.Starts[w.Name]
				if w.Bias {
					f.stream += biasStream
				} else {
					matrices += f.stack
				}
				all = append(all, f)
			}
		}
	}
	for i := logits; i < len(all); i++ {
		all[i].logits = true
	}
	return all
}

// products divides the weights of a layer into groups: matrices whose results are added, and
// the bias after them.
func products(layer []Shape) [][]Shape {
	var all [][]Shape
	begin := 0
	for i, w := range layer {
		if w.Bias || i == len(layer)-1 {
			all = append(all, layer[begin:i+1])
			begin = i + 1
		}
	}
	return all
}

// smallLogits is the factor of torch's bound in small-logits.
const smallLogits = 0.1

// draw fills dst, which is the weight's part of the flat vector.
func (w initialWeight) draw(dst []float32, initializer string, seed uint64) {
	if w.stack > 1 {
		one, each := w, len(dst)/w.stack
		one.stack, one.Rows = 1, w.Rows/w.stack
		for k := range w.stack {
			one.draw(dst[k*each:(k+1)*each], initializer, seed)
			one.stream += 1 << 16
		}
		return
	}
	switch {
	case w.starts:
		for i := range dst {
			dst[i] = w.value
		}
	case initializer == "torch", initializer == "small-logits":
		kernels.Torch(dst, w.Rows, w.Cols, w.inputs, seed, w.stream)
		if w.logits && initializer == "small-logits" {
			kernels.ScaleRow(dst, smallLogits)
		}
	case w.Bias:
		clear(dst)
	case initializer == "he":
		kernels.He(dst, w.Rows, w.Cols, seed, w.stream)
	default:
		kernels.Xavier(dst, w.Rows, w.Cols, seed, w.stream)
	}
}
