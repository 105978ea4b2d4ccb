package kernels

// Element-wise maxima of matrices, and their gradient.
//
//	dst[i] = max(dst[i], x[i])
//	dst[i] (+)= x[i] = m[i] ? g[i] : 0,  and g[i] = 0 there
//
// Variant: the first operand that has the maximum takes the gradient from g, so that with ties
// only one operand gets it. A NaN is not larger than anything.

// Larger implements Ops.
func (t *Team) Larger(dst, x Mat) {
	mustFit(isSameShape(dst, x))
	do(t, largerTask{dst: dst.Host(), x: x.Host()}, dst.Rows*dst.Cols, chunkElements)
}

// LargerGrad implements Ops.
func (t *Team) LargerGrad(dst, g, x, m Mat, add bool) {
	mustFit(isSameShape(dst, g) && isSameShape(dst, x) && isSameShape(dst, m))
	do(t, largerTask{dst.Host(), x.Host(), g.Host(), m.Host(), add, true}, dst.Rows*dst.Cols, chunkElements)
}

type largerTask struct {
	dst, x, g, m []float32
	add, back    bool
}

func (k *largerTask) chunk(lo, hi int) {
	dst, x := k.dst[lo:hi], k.x[lo:hi]
	if !k.back {
		for i, v := range x {
			if v > dst[i] {
				dst[i] = v
			}
		}
		return
	}
	g, m := k.g[lo:hi], k.m[lo:hi]
	for i, v := range x {
		if !k.add {
			dst[i] = 0
		}
		if v == m[i] {
			dst[i] += g[i]
			g[i] = 0
		}
	}
}
