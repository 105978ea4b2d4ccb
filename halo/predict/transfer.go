package predict

import (
	"math"

	"siafu/internal/mapped"
	"siafu/kernels"
)

var transferKind = kind{
	entry: entry{Name: "transfer", Help: "an affine map from the own rows of the ghosts' epoch to those of the current epoch, fitted again in each epoch, layer and part"},
	model: newTransfer,
}

// transfer is the ridge regression of the change of own rows:
//
//	H̃ + X̃ D,  D = argmin ‖H - H̃ - X̃ D‖² + λ ‖D‖²,  X̃ = (H̃ 1)
//
// H̃ are rows of the ghosts' epoch and H rows of the current epoch. λ does not apply to the constant
// row of D. Columns that own rows do not determine stay stale.
type transfer struct {
	team   *kernels.Team
	gram   []float64 // X̃ᵀX̃ + λ, then its Cholesky factor; lower triangle [width+1 x width+1]
	change []float64 // X̃ᵀ(H - H̃), then D [width+1 x width]
	matrix []float32 // I + D, then the last row of D [width+1 x width]
	x      examples
	width  int
	sum    func(lo, hi int)
	solve  func(lo, hi int)
}

// ridge is λ as a fraction of the mean squared norm of the columns of H̃.
const ridge = 1e-5

func newTransfer(width int, team *kernels.Team, a *mapped.Arena) model {
	t := &transfer{
		team: team, gram: mapped.Make[float64](a, (width+1)*(width+1)), change: mapped.Make[float64](a, (width+1)*width),
		matrix: mapped.Make[float32](a, (width+1)*width),
	}
	t.sum, t.solve = t.sumRows, t.solveColumns
	return t
}

func (t *transfer) fit(x examples) Fallback {
	t.x, t.width = x, x.now.Cols
	d := t.width
	n := d + 1
	t.team.Run(n, 8, t.sum)
	trace := 0.0
	for i := range d {
		trace += t.gram[i*n+i]
	}
	for i := range d {
		t.gram[i*n+i] += ridge * trace / float64(d)
	}
	gram, change := t.gram[:n*n], t.change[:n*d]
	if !finite(gram) || !finite(change) {
		return NotFinite
	}
	if trace == 0 || !factorise(gram, n) {
		return Singular
	}
	t.team.Run(d, 16, t.solve)
	m := t.matrix
	for i, v := range change {
		m[i] = float32(v)
	}
	for i := range d {
		m[i*d+i] = float32(t.change[i*d+i] + 1)
	}
	return none
}

// sumRows computes, of X̃ = (H̃ 1), rows lo..hi-1 of gram, up to the diagonal, and of change. Each number is a sum
// in the order of own rows.
func (t *transfer) sumRows(lo, hi int) {
	d, now, stale := t.width, t.x.now.Host(), t.x.stale.Host()
	n := d + 1
	clear(t.gram[lo*n : hi*n])
	clear(t.change[lo*d : hi*d])
	for r := range t.x.now.Rows {
		x, y := stale[r*d:(r+1)*d], now[r*d:(r+1)*d]
		for i := lo; i < hi; i++ {
			xi := 1.0
			if i < d {
				xi = float64(x[i])
			}
			if xi == 0 {
				continue
			}
			gram, change := t.gram[i*n:i*n+i+1], t.change[i*d:(i+1)*d]
			for j := range gram[:min(i+1, d)] {
				gram[j] += xi * float64(x[j])
			}
			if i == d {
				gram[d]++
			}
			for j := range change {
				change[j] += xi * (float64(y[j]) - float64(x[j]))
			}
		}
	}
}

// solveColumns replaces columns lo..hi-1 of change by those of D.
func (t *transfer) solveColumns(lo, hi int) {
	d := t.width
	n := d + 1
	for i := range n {
		row := t.change[i*d+lo : i*d+hi]
		for k := range i {
			subtract(row, t.gram[i*n+k], t.change[k*d+lo:k*d+hi])
		}
		divide(row, t.gram[i*n+i])
	}
	for i := n - 1; i >= 0; i-- {
		row := t.change[i*d+lo : i*d+hi]
		for k := i + 1; k < n; k++ {
			subtract(row, t.gram[k*n+i], t.change[k*d+lo:k*d+hi])
		}
		divide(row, t.gram[i*n+i])
	}
}

func (t *transfer) apply(dst, rows, _ kernels.Mat) {
	d := t.width
	t.team.MatMulBiasReLUDropout(dst, rows, kernels.HostMat(d, d, t.matrix), kernels.HostMat(1, d, t.matrix[d*d:]), false, nil)
}

// factorise replaces the lower triangle of a symmetric matrix a [d x d] by its Cholesky factor. It
// returns false if a is not positive definite.
func factorise(a []float64, d int) bool {
	for i := range d {
		for j := 0; j <= i; j++ {
			sum := a[i*d+j]
			for k := range j {
				sum -= a[i*d+k] * a[j*d+k]
			}
			if i > j {
				a[i*d+j] = sum / a[j*d+j]
				continue
			}
			if !(sum > 0) {
				return false
			}
			a[i*d+i] = math.Sqrt(sum)
		}
	}
	return true
}

func subtract(dst []float64, by float64, x []float64) {
	for j := range dst {
		dst[j] -= by * x[j]
	}
}

func divide(dst []float64, by float64) {
	for j := range dst {
		dst[j] /= by
	}
}

func finite(x []float64) bool {
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
