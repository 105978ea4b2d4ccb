package kernels

import "siafu/kernels/internal/avx"

// Dense products of operands rounded to bfloat16.
//
//	dst (+)= bf16(a) bf16(b)       ties to even; magnitudes below 2⁻⁵⁶ become 0
//
// Sums are float32, in the order of float32 products. All variants but openblas give the same bits.
//
// Variant: AVX512-BF16 adds two products per lane, one after the other, each sum rounded as by FMA. A
// product of two bfloat16 is exact in float32, so that other instruction sets round the operands and
// compute a float32 product. The instruction sets a denormal sum to 0, but there is none: the products
// are multiples of 2⁻¹²⁶, the least normal float32.
//
// Design note: AMX, which may sum in another order, is not used.

// leastRounded is the least magnitude of a rounded operand.
const leastRounded = 0x1p-56

// RoundOperands sets whether MatMul, MatMulTransA, MatMulTransB and the products of fused kernels round their
// operands to bfloat16.
func (t *Team) RoundOperands(on bool) { t.rounds = on }

// rounding is the preparation of a product's operands.
type rounding struct {
	rounds bool
	pairs  bool // by package avx, which rounds rows of A itself and takes pairs of rows of B
}

// pairs reports whether dense products use instructions for bfloat16.
func (t *Team) pairs() bool {
	return t.rounds && t.product.builtin && !t.emulates && t.set.HasPairs()
}

// rounding returns the rounding of a product that skips zeros or not.
func (t *Team) rounding(skips bool) rounding { return rounding{t.rounds, t.pairs() && !skips} }

// copies reports whether A must be rounded before the product.
func (r rounding) copies() bool { return r.rounds && !r.pairs }

// roundA returns rows of a, stride elements apart, as the product takes them. Rounded rows are adjacent in buffer,
// where a may be.
func (r rounding) roundA(buffer *[]float32, set avx.Set, a []float32, stride, rows, cols int) []float32 {
	if !r.copies() {
		return a
	}
	dst := scratch(buffer, rows*cols)
	for i := range rows {
		roundRow(set, rowOf(dst, i, cols), a[i*stride:][:cols])
	}
	return dst
}

// roundB returns b [rows x cols] in buffer, as the product takes it.
func (r rounding) roundB(buffer *[]float32, set avx.Set, b []float32, rows, cols int) []float32 {
	if r.pairs {
		dst := scratch(buffer, (rows+1)/2*cols)
		set.PairColumns(dst, cols, b, cols, rows, cols)
		return dst
	}
	return r.roundA(buffer, set, b, cols, rows, cols)
}

func roundRow(set avx.Set, dst, x []float32) {
	done := 0
	if set != avx.None {
		done = set.Round(dst, x)
	}
	for j := done; j < len(dst); j++ {
		dst[j] = Narrow(x[j]).Float32()
		if -leastRounded < dst[j] && dst[j] < leastRounded {
			dst[j] = 0
		}
	}
}
