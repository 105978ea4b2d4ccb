package predict

import (
	"siafu/internal/mapped"
	"siafu/kernels"
)

var transferKind = kind{
	entry: entry{Name: "transfer", Help: "an affine map from the own rows of the ghosts' epoch to those of the current epoch, fitted " +
		"again in each epoch, layer and part"},
	kept:  func(width int) int { return 1 + (2*width+1)*width },
	model: newTransfer,
}

// transfer is the ridge regression of the change of own rows:
//
//	H̃ + c + (H̃ - m) D,  D = argmin ‖H - H̃ - (H̃ - m) D‖² + λ ‖D‖²
//
// H̃ are rows of the ghosts' epoch and H rows of the current epoch; m and c are the means of the
// columns of H̃ and of H - H̃. Columns that own rows do not determine stay stale.
//
// With the Gram matrix G of H̃ - m and its Cholesky factor, G + λI = L Lᵀ,
//
//	D = L⁻ᵀ L⁻¹ (H̃ᵀ H - n m h - G)
//
// where h are the means of the columns of H. m, G and L⁻¹ depend only on H̃: they serve all epochs and
// ages that start from the same rows. Thus a fit has one product over rows, which skips the zeros that
// ReLU leaves in H̃.
//
// Sums over rows are products of package kernels, in float32 and an order that depends only on
// shapes. G is the product of centred rows: H̃ - m has no large means, so that the rounding error of G,
// about 1e-6 of a column's sum of squares, is below λ. The equations are solved with L⁻¹ and not with
// (G + λI)⁻¹: its numbers are at most 1/√λ, so that float32 suffices.
type transfer struct {
	team    *kernels.Team
	centred []float32 // some rows of H̃ - m [gramRows x width]
	product []float32 // of H̃ and H, then the right-hand side [width x width]
	half    []float32 // L⁻¹ times product [width x width]
	means   []float32 // h [width]
	matrix  []float32 // I + D, then c - m D [width+1 x width]
	factor  []float64 // L, lower triangle [width x width]
}

// kept is what transfer keeps for stale rows of a width.
type kept struct {
	known     *float32  // 1 if the others are set, else 0
	means     []float32 // -m [width]
	gram, inv []float32 // G and L⁻¹ [width x width]
}

func keptOf(x []float32, width int) kept {
	d := width * width
	return kept{&x[0], x[1:][:width], x[1+width:][:d], x[1+width+d:][:d]}
}

// ridge is λ as a fraction of the mean squared norm of the columns of H̃ - m.
const ridge = 1e-5

// gramRows is the number of rows that are centred at once.
const gramRows = 512

func newTransfer(width, rows int, team *kernels.Team, a *mapped.Arena) model {
	square := func() []float32 { return mapped.Make[float32](a, width*width) }
	return &transfer{
		team: team, centred: mapped.Make[float32](a, min(rows, gramRows)*width), product: square(), half: square(),
		means: mapped.Make[float32](a, width), matrix: mapped.Make[float32](a, (width+1)*width),
		factor: mapped.Make[float64](a, width*width),
	}
}

func (t *transfer) fit(x examples) Fallback {
	n, d := x.now.Rows, x.now.Cols
	k := keptOf(x.kept, d)
	if *k.known == 0 { // own rows of this epoch are new
		if reason := t.prepare(k, x.stale); reason != none {
			return reason
		}
		*k.known = 1
	}
	product, half := kernels.HostMat(d, d, t.product), kernels.HostMat(d, d, t.half)
	t.mean(kernels.HostMat(1, d, t.means), x.now, 1)
	t.team.MatMulTransA(product, x.stale, x.now, false)
	if !finite(t.product[:d*d]) || !finite(t.means[:d]) {
		return NotFinite
	}
	for i, m := range k.means {
		row, by := t.product[i*d:(i+1)*d], float64(n)*float64(m)
		for j, g := range k.gram[i*d : (i+1)*d] {
			row[j] = float32(float64(row[j]) + float64(by*float64(t.means[j])) - float64(g))
		}
	}
	inv, matrix := kernels.HostMat(d, d, k.inv), kernels.HostMat(d, d, t.matrix)
	t.team.MatMul(half, inv, product, false)
	t.team.MatMulTransA(matrix, inv, half, false)
	last := kernels.HostMat(1, d, t.matrix[d*d:])
	t.team.MatMul(last, kernels.HostMat(1, d, k.means), matrix, false)
	for j := range d {
		last.Host()[j] += t.means[j] + k.means[j]
		t.matrix[j*d+j]++
	}
	return none
}

// mean sets dst [1 x width] to the means of the columns of x, multiplied by sign.
func (t *transfer) mean(dst, x kernels.Mat, sign float32) {
	t.team.ColumnSums(dst, x, false)
	kernels.ScaleRow(dst.Host(), sign/float32(x.Rows))
}

// prepare sets what is kept for stale rows.
func (t *transfer) prepare(k kept, stale kernels.Mat) Fallback {
	d := stale.Cols
	means, gram := kernels.HostMat(1, d, k.means), kernels.HostMat(d, d, k.gram)
	t.mean(means, stale, -1)
	for lo := 0; lo < stale.Rows; lo += gramRows {
		rows := stale.Part(lo, min(lo+gramRows, stale.Rows))
		centred := kernels.HostMat(rows.Rows, d, t.centred)
		t.team.BiasReLUDropout(centred, rows, means, false, nil)
		t.team.MatMulTransA(gram, centred, centred, lo > 0)
	}
	if !finite(k.means) || !finite(k.gram) {
		return NotFinite
	}
	return t.factorise(k, d)
}

// factorise sets k.inv to the inverse of the Cholesky factor of G + λI.
func (t *transfer) factorise(k kept, d int) Fallback {
	a := t.factor
	if reason := factorise(a, d, func(i, j int) float64 { return float64(k.gram[i*d+j]) }); reason != none {
		return reason
	}
	invert(a, d)
	for i := range d {
		for j := range d {
			k.inv[i*d+j] = 0
			if j <= i {
				k.inv[i*d+j] = float32(a[i*d+j])
			}
		}
	}
	return none
}

func (t *transfer) apply(dst, rows kernels.Mat) {
	d := rows.Cols
	t.team.MatMulBiasReLUDropout(dst, rows, kernels.HostMat(d, d, t.matrix), kernels.HostMat(1, d, t.matrix[d*d:]), false, nil)
}

func (t *transfer) affine(width int) kernels.Mat {
	return kernels.HostMat(width+1, width, t.matrix)
}

func finite(x []float32) bool {
	sum := float32(0)
	for _, v := range x {
		sum += v * 0 // NaN if v is not finite
	}
	return sum == 0
}
