package model

import (
	"cmp"

	"siafu/kernels"
)

// Auto is the initialiser that stands for the one of the kind of network.
const Auto = "auto"

// Initializers are the names of random first weights.
//
//	xavier        matrices as Glorot & Bengio 2010, biases zero
//	he            matrices as He et al. 2015, biases zero
//	torch         matrices and biases as PyTorch's Linear
//	small-logits  torch, but a tenth of it in the product that makes the logits
//
// The first steps of Adam move every weight by the learning rate, whatever the
// size of its gradient. Where features have one sign, a unit of the hidden layer
// moves by the learning rate times their sum, for all vertices in one direction:
// that which the logits of the beginning, wrong for all vertices in the same
// way, happen to ask for. Small logits are wrong for each vertex in its own
// way. They must not be zero: then all units would be asked for the same.
func Initializers() []string { return []string{"xavier", "he", "torch", "small-logits"} }

// Initializer is the name of an initialiser, that of the kind of network for
// Auto.
func (s Spec) Initializer(name string) string {
	if name == Auto {
		return cmp.Or(s.kind().Initializer, "xavier")
	}
	return name
}

// Initialize fills a flat vector with random first weights: those of an
// initialiser with a name, or Auto. They depend on the seed and the shapes only.
func (s Spec) Initialize(flat []float32, initializer string, seed uint64) {
	name := s.Initializer(initializer)
	for _, w := range s.allInitialWeights() {
		n := w.Rows * w.Cols
		w.draw(flat[:n], name, seed)
		flat = flat[n:]
	}
}

// biasStream tells the random numbers of a bias from those of the matrix that
// would come in its place.
const biasStream = 1 << 15

// initialWeight is a weight before the first epoch.
type initialWeight struct {
	Shape
	inputs int  // of the product that it belongs to
	logits bool // which is the network's last
	stream int  // of random numbers: no two weights of a network draw the same
	starts bool // with a value
	value  float32
}

// allInitialWeights are all weights in the order of the flat vector.
func (s Spec) allInitialWeights() []initialWeight {
	var all []initialWeight
	inputs, logits := 0, 0 // of the last product that has begun, and where it did
	parts := append(s.parts(), Part{kind: Kind{Weights: func(s Spec, _ int) []Shape { return s.headShapes() }}})
	for l, part := range parts {
		matrices := 0
		for _, product := range products(part.kind.Weights(s, l)) {
			if !product[0].Bias { // else the bias is that of a product before
				inputs, logits = product[0].Rows, len(all)
			} else if matrices > 0 { // there is another bias with as many before it
				matrices++
			}
			for _, w := range product {
				f := initialWeight{Shape: w, inputs: inputs, stream: l + matrices<<16}
				f.value, f.starts = part.kind.Starts[w.Name]
				if w.Bias {
					f.stream += biasStream
				} else {
					matrices++
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

// products divides the weights of a layer: a matrix, or several whose results
// meet, and the bias after them.
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

// smallLogits is the share of torch's bound in small-logits.
const smallLogits = 0.1

// draw fills dst, which is the weight's part of the flat vector.
func (w initialWeight) draw(dst []float32, initializer string, seed uint64) {
	switch {
	case w.starts:
		for i := range dst {
			dst[i] = w.value
		}
	case initializer == "torch", initializer == "small-logits" && !w.logits:
		kernels.Torch(dst, w.Rows, w.Cols, w.inputs, seed, w.stream)
	case initializer == "small-logits":
		kernels.Torch(dst, w.Rows, w.Cols, w.inputs, seed, w.stream)
		kernels.ScaleRow(dst, smallLogits)
	case w.Bias:
		clear(dst)
	case initializer == "he":
		kernels.He(dst, w.Rows, w.Cols, seed, w.stream)
	default:
		kernels.Xavier(dst, w.Rows, w.Cols, seed, w.stream)
	}
}
