package kernels

// A ReLU with a slope below zero that is learned (He et al. 2015), one for all elements.
//
//	dst[i] = z[i] > 0 ? z[i] : slope·z[i]
//	dst[i] = g[i] · (z[i] > 0 ? 1 : slope),  slope's gradient is Σ g[i]·z[i] over z[i] ≤ 0
//
// Variant: elements are cut into blocks by a rule that depends only on their number. The
// blocks' sums are float64 and are added in order.

// PReLU implements Ops.
func (t *Team) PReLU(dst, z, slope Mat) {
	mustFit(isSameShape(dst, z) && slope.Rows == 1 && slope.Cols == 1)
	n := dst.Rows * dst.Cols
	do(t, preluTask{dst: dst.Host(), z: z.Host(), slope: slope.Host()[0], n: n, blocks: blocksOf(n, 1)}, n, chunkElements)
}

// PReLUGrad implements Ops.
func (t *Team) PReLUGrad(dst, slope, g, z, w Mat) {
	mustFit(isSameShape(dst, g) && isSameShape(dst, z) && slope.Rows*slope.Cols == 1 && w.Rows*w.Cols == 1)
	n := dst.Rows * dst.Cols
	blocks := blocksOf(n, 1)
	args := preluTask{dst.Host(), g.Host(), z.Host(), scratch(&t.sums, blocks), w.Host()[0], n, blocks}
	do(t, args, blocks, 1)
	sum := 0.0
	for _, v := range args.parts {
		sum += v
	}
	slope.Host()[0] = float32(sum)
}

type preluTask struct {
	dst, g, z []float32 // parts nil: forward
	parts     []float64
	slope     float32
	n, blocks int
}

func (k *preluTask) chunk(lo, hi int) {
	if k.parts == nil {
		for i, x := range k.z[lo:hi] {
			if !(x > 0) {
				x *= k.slope
			}
			k.dst[lo+i] = x
		}
		return
	}
	for b := lo; b < hi; b++ {
		k.parts[b] = k.block(b*k.n/k.blocks, (b+1)*k.n/k.blocks)
	}
}

// block computes the gradient of elements [lo, hi), and returns their part of the slope's.
func (k *preluTask) block(lo, hi int) (sum float64) {
	dst, z := k.dst[lo:hi], k.z[lo:hi]
	for i, g := range k.g[lo:hi] {
		if x := z[i]; !(x > 0) {
			sum += float64(g) * float64(x)
			g *= k.slope
		}
		dst[i] = g
	}
	return sum
}
