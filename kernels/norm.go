package kernels

import "math"

// The operations of row and column normalisations.
//
//	moments   sums[c] = Σ_r x[r][c],  sums[cols+c] = Σ_r x[r][c]·y[r][c]
//	affine    dst[r][c] = g[r][c]·a[c] + z[r][c]·b[c] + c[c]
//	layer     x̂[r][c] = (z[r][c] - mean_r) / sqrt(var_r + ε),  dst = x̂·gain + bias
//
// Variant: moments are summed in float64, in blocks of rows and then in order of blocks, so
// that a variance can be a small difference of large sums. LayerNorm reads a row once per sum,
// while it is in the caches. The backward pass recomputes x̂ from z, and stores nothing.

// ColumnMoments implements Ops.
func (t *Team) ColumnMoments(dst Vector[float64], x, y Mat) {
	mustFit(isSameShape(x, y) && dst.Len() == 2*x.Cols)
	blocks := blocksOf(x.Rows, 4*x.Cols)
	args := momentsTask{scratch(&t.sums, blocks*2*x.Cols), x.Host(), y.Host(), x.Rows, x.Cols, blocks}
	do(t, args, blocks, 1)
	sums := dst.Host()
	clear(sums)
	for b := range blocks {
		for c, v := range args.parts[b*2*x.Cols : (b+1)*2*x.Cols] {
			sums[c] += v
		}
	}
}

type momentsTask struct {
	parts              []float64
	x, y               []float32
	rows, cols, blocks int
}

func (k *momentsTask) chunk(lo, hi int) {
	for b := lo; b < hi; b++ {
		part := k.parts[b*2*k.cols : (b+1)*2*k.cols]
		clear(part)
		first, second := part[:k.cols], part[k.cols:]
		for r := b * k.rows / k.blocks; r < (b+1)*k.rows/k.blocks; r++ {
			x, y := rowOf(k.x, r, k.cols), rowOf(k.y, r, k.cols)
			for c, v := range x {
				first[c] += float64(v)
				second[c] += float64(v) * float64(y[c])
			}
		}
	}
}

// AffineColumns implements Ops.
func (t *Team) AffineColumns(dst, g, a, z, b, c Mat) {
	mustFit(isSameShape(dst, g) && a.Cols >= dst.Cols && c.Cols >= dst.Cols && (z.IsNil() || isSameShape(dst, z) && b.Cols >= dst.Cols))
	do(t, affineTask{dst.Host(), g.Host(), a.Host(), z.Host(), b.Host(), c.Host(), dst.Cols}, dst.Rows, rowGrain(dst.Cols))
}

type affineTask struct {
	dst, g, a, z, b, c []float32 // z nil: without
	cols               int
}

func (k *affineTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		dst, g := rowOf(k.dst, r, k.cols), rowOf(k.g, r, k.cols)
		for j, v := range g {
			dst[j] = float32(v*k.a[j]) + k.c[j]
		}
		if k.z == nil {
			continue
		}
		for j, v := range rowOf(k.z, r, k.cols) {
			dst[j] += float32(v * k.b[j])
		}
	}
}

// LayerNorm implements Ops.
func (t *Team) LayerNorm(dst, z, gain, bias Mat, eps float32) {
	mustFit(isSameShape(dst, z) && gain.Cols >= dst.Cols && bias.Cols >= dst.Cols)
	if dst.Cols > 0 {
		do(t, layerNormTask{dst.Host(), z.Host(), gain.Host(), bias.Host(), dst.Cols, eps}, dst.Rows, rowGrain(dst.Cols))
	}
}

type layerNormTask struct {
	dst, z, gain, bias []float32
	cols               int
	eps                float32
}

func (k *layerNormTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		dst, z := rowOf(k.dst, r, k.cols), rowOf(k.z, r, k.cols)
		mean, scale := rowMoments(z, k.eps)
		for j, v := range z {
			dst[j] = float32((v-mean)*scale*k.gain[j]) + k.bias[j]
		}
	}
}

// rowMoments returns the mean of a row, and 1/sqrt(variance + eps).
func rowMoments(z []float32, eps float32) (mean, scale float32) {
	sum, squares, n := 0.0, 0.0, float64(len(z))
	for _, v := range z {
		sum += float64(v)
	}
	for _, v := range z {
		d := float64(v) - sum/n
		squares += float64(d * d)
	}
	return float32(sum / n), float32(1 / math.Sqrt(squares/n+float64(eps)))
}

// LayerNormGrad implements Ops.
func (t *Team) LayerNormGrad(dst, gain, bias, g, z, w Mat, eps float32) {
	mustFit(isSameShape(dst, g) && isSameShape(dst, z) && w.Cols >= dst.Cols && gain.Cols == dst.Cols && bias.Cols == dst.Cols)
	if dst.Cols == 0 {
		return
	}
	blocks := blocksOf(dst.Rows, 4*dst.Cols)
	args := layerNormGradTask{scratch(&t.sums, blocks*2*dst.Cols), dst.Host(), g.Host(), z.Host(), w.Host(),
		dst.Rows, dst.Cols, blocks, eps}
	do(t, args, blocks, 1)
	for j, into := range [][]float32{bias.Host(), gain.Host()} {
		for c := range into {
			sum := 0.0
			for b := range blocks {
				sum += args.parts[(2*b+j)*dst.Cols+c]
			}
			into[c] = float32(sum)
		}
	}
}

type layerNormGradTask struct {
	parts              []float64 // per block, the gradients of bias and gain
	dst, g, z, w       []float32
	rows, cols, blocks int
	eps                float32
}

func (k *layerNormGradTask) chunk(lo, hi int) {
	for b := lo; b < hi; b++ {
		part := k.parts[b*2*k.cols : (b+1)*2*k.cols]
		clear(part)
		for r := b * k.rows / k.blocks; r < (b+1)*k.rows/k.blocks; r++ {
			k.row(r, part[:k.cols], part[k.cols:])
		}
	}
}

// row computes dz = s·(d - mean(d) - x̂·mean(d·x̂)), with d = g·w.
func (k *layerNormGradTask) row(r int, bias, gain []float64) {
	dst, g, z := rowOf(k.dst, r, k.cols), rowOf(k.g, r, k.cols), rowOf(k.z, r, k.cols)
	mean, scale := rowMoments(z, k.eps)
	sum, along := 0.0, 0.0
	for j, v := range g {
		x := (z[j] - mean) * scale
		bias[j] += float64(v)
		gain[j] += float64(v) * float64(x)
		d := float64(v) * float64(k.w[j])
		sum += d
		along += float64(d * float64(x))
	}
	m, a := float32(sum/float64(k.cols)), float32(along/float64(k.cols))
	for j, v := range g {
		dst[j] = scale * (float32(v*k.w[j]) - m - float32((z[j]-mean)*scale*a))
	}
}
