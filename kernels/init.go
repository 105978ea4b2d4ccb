package kernels

import "math"

// Initial weights, uniform in (-a, a).
//
//	Xavier  a = sqrt(6/(rows+cols))   Glorot and Bengio, AISTATS 2010, equation 16
//	He      a = sqrt(6/rows)          He et al., ICCV 2015, equation 10, as a uniform
//	Torch   a = sqrt(1/inputs)        torch.nn.Linear, matrix and bias alike
//
// Variant: element i takes word i mod 4 of a Philox draw counted by i/4 and the layer, so that
// weights depend only on seed, layer and shape.

// Xavier fills the weights dst [rows x cols], rows being the inputs.
func Xavier(dst []float32, rows, cols int, seed uint64, layer int) {
	fillUniform(dst, rows, cols, math.Sqrt(6/float64(max(rows+cols, 1))), seed, layer)
}

// He fills the weights dst [rows x cols] of a layer with ReLU, rows being the
// inputs.
func He(dst []float32, rows, cols int, seed uint64, layer int) {
	fillUniform(dst, rows, cols, math.Sqrt(6/float64(max(rows, 1))), seed, layer)
}

// Torch fills the matrix or the bias dst [rows x cols] of a product with the given number of
// inputs. PyTorch's Linear calls this kaiming_uniform_ with a = sqrt(5).
func Torch(dst []float32, rows, cols, inputs int, seed uint64, layer int) {
	fillUniform(dst, rows, cols, math.Sqrt(1/float64(max(inputs, 1))), seed, layer)
}

func fillUniform(dst []float32, rows, cols int, a float64, seed uint64, layer int) {
	checkMatrix(dst, rows, cols, shortDst)
	key := philoxKey(seed)
	var words [4]uint32
	for i := range rows * cols {
		if i%4 == 0 {
			block := uint64(i / 4)
			words = Philox([4]uint32{uint32(block), uint32(block >> 32), 0, uint32(layer) | streamWeights}, key)
		}
		// 24 bits plus a half: exact in float32, symmetric, never an end point.
		u := (float64(words[i%4]>>8) + 0.5) / (1 << 24)
		dst[i] = float32(a * (float64(2*u) - 1))
	}
}
