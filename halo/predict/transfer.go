package predict

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"siafu/internal/mapped"
	"siafu/kernels"
)

var transferKind = kind{
	entry: entry{Name: "transfer", Help: "an affine map from the own rows of the ghosts' epoch to those of the current epoch, fitted again in each epoch, layer and part"},
	kept:  func(width int) int { return width * width },
	model: newTransfer,
}

// transfer is the ridge regression of the change of own rows:
//
//	H̃ + c + (H̃ - m) D,  D = argmin ‖H - H̃ - (H̃ - m) D‖² + λ ‖D‖²
//
// H̃ are rows of the ghosts' epoch and H rows of the current epoch; m and c are the means of the
// columns of H̃ and of H - H̃. Columns that own rows do not determine stay stale.
//
// Sums over rows are products of package kernels, in float32 and an order that depends only on
// shapes. H̃ - m has no large means, so that their rounding error, about 1e-6 of a column's sum of
// squares, is below λ. The equations are solved in float64. The Gram matrix depends only on H̃: its
// factor serves all epochs and ages that start from the same rows.
type transfer struct {
	team     *kernels.Team
	centred  []float32 // H̃ - m [rows x width]
	change   []float32 // H - H̃ [rows x width]
	product  []float32 // a product of the two, or of the first with itself [width x width]
	means    []float32 // -m, then c [2 x width]
	solution []float64 // D [width x width]
	matrix   []float32 // I + D, then c - m D [width+1 x width]
	factor   []float64 // Cholesky factor of the Gram matrix, lower triangle [width x width]
	width    int
	solve    func(lo, hi int)
}

// ridge is λ as a fraction of the mean squared norm of the columns of H̃ - m.
const ridge = 1e-5

func newTransfer(width, rows int, team *kernels.Team, a *mapped.Arena) model {
	t := &transfer{
		team: team, centred: mapped.Make[float32](a, rows*width), change: mapped.Make[float32](a, rows*width),
		product: mapped.Make[float32](a, width*width), means: mapped.Make[float32](a, 2*width),
		solution: mapped.Make[float64](a, width*width), matrix: mapped.Make[float32](a, (width+1)*width),
	}
	t.solve = t.solveColumns
	return t
}

func (t *transfer) fit(x examples) Fallback {
	n, d := x.now.Rows, x.now.Cols
	t.width, t.factor = d, x.kept
	centred, change, product := kernels.HostMat(n, d, t.centred), kernels.HostMat(n, d, t.change), kernels.HostMat(d, d, t.product)
	m, c := kernels.HostMat(1, d, t.means), kernels.HostMat(1, d, t.means[d:])
	t.mean(m, x.stale, -1)
	t.team.BiasReLUDropout(centred, x.stale, m, false, nil)
	if t.factor[0] == 0 { // own rows of this epoch are new
		t.team.MatMulTransA(product, centred, centred, false)
		if reason := t.factorise(); reason != none {
			return reason
		}
	}
	t.team.Copy(change, x.now)
	t.team.Blend(change, 1, x.stale, -1)
	t.mean(c, change, 1)
	t.team.MatMulTransA(product, centred, change, false)
	if !finite(t.product[:d*d]) || !finite(t.means[:2*d]) {
		return NotFinite
	}
	for i, v := range t.product[:d*d] {
		t.solution[i] = float64(v)
	}
	t.team.Run(d, 16, t.solve)
	return none
}

// mean sets dst [1 x width] to the means of the columns of x, multiplied by sign.
func (t *transfer) mean(dst, x kernels.Mat, sign float32) {
	t.team.ColumnSums(dst, x, false)
	kernels.ScaleRow(dst.Host(), sign/float32(x.Rows))
}

// factorise sets factor to the Cholesky factor of the Gram matrix in product, plus λ. Its first
// number stays 0 if it fails.
func (t *transfer) factorise() Fallback {
	d, a, trace := t.width, t.factor, 0.0
	gram := t.product[:d*d]
	if !finite(gram) {
		return NotFinite
	}
	for i := range d {
		trace += float64(gram[i*d+i])
	}
	var b gonum.Implementation
	for i := range d {
		for j := range i + 1 {
			sum := float64(gram[i*d+j]) - b.Ddot(j, a[i*d:], 1, a[j*d:], 1)
			if i > j {
				a[i*d+j] = sum / a[j*d+j]
				continue
			}
			if sum += ridge * trace / float64(d); !(sum > 0) {
				a[0] = 0
				return Singular
			}
			a[i*d+i] = math.Sqrt(sum)
		}
	}
	return none
}

// solveColumns computes columns lo..hi-1 of D, and those of matrix.
func (t *transfer) solveColumns(lo, hi int) {
	d, x := t.width, t.solution
	var b gonum.Implementation
	b.Dtrsm(blas.Left, blas.Lower, blas.NoTrans, blas.NonUnit, d, hi-lo, 1, t.factor, d, x[lo:], d)
	b.Dtrsm(blas.Left, blas.Lower, blas.Trans, blas.NonUnit, d, hi-lo, 1, t.factor, d, x[lo:], d)
	last := t.matrix[d*d:]
	copy(last[lo:hi], t.means[d+lo:d+hi])
	for i := range d {
		for j := lo; j < hi; j++ {
			v := float32(x[i*d+j])
			t.matrix[i*d+j] = v
			last[j] += t.means[i] * v
		}
	}
	for j := lo; j < hi; j++ {
		t.matrix[j*d+j] = float32(x[j*d+j] + 1)
	}
}

func (t *transfer) apply(dst, rows, _ kernels.Mat) {
	d := t.width
	t.team.MatMulBiasReLUDropout(dst, rows, kernels.HostMat(d, d, t.matrix), kernels.HostMat(1, d, t.matrix[d*d:]), false, nil)
}

func finite(x []float32) bool {
	sum := float32(0)
	for _, v := range x {
		sum += v * 0 // NaN if v is not finite
	}
	return sum == 0
}
