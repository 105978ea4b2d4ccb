package predict

import "math"

// Symmetric equations in float64. BLAS would differ between processors: it rounds products on some
// and fuses them with sums on others.

// factorise sets the lower triangle of l [n x n] to the Cholesky factor of a matrix plus λI, where λ is
// ridge times the mean of the matrix's diagonal.
func factorise(l []float64, n int, matrix func(i, j int) float64) Fallback {
	trace := 0.0
	for i := range n {
		trace += matrix(i, i)
	}
	if math.IsNaN(trace) || math.IsInf(trace, 0) {
		return NotFinite
	}
	for i := range n {
		for j := range i + 1 {
			sum := matrix(i, j) - innerProduct(l[i*n:i*n+j], l[j*n:])
			if i > j {
				l[i*n+j] = sum / l[j*n+j]
				continue
			}
			if sum += ridge * trace / float64(n); !(sum > 0) {
				return Singular
			}
			l[i*n+i] = math.Sqrt(sum)
		}
	}
	return none
}

// innerProduct has four partial sums, which do not wait for one another.
func innerProduct(x, y []float64) float64 {
	var a, b, c, d float64
	y = y[:len(x)]
	for ; len(x) >= 4; x, y = x[4:], y[4:] {
		a, b = a+float64(x[0]*y[0]), b+float64(x[1]*y[1])
		c, d = c+float64(x[2]*y[2]), d+float64(x[3]*y[3])
	}
	for k, v := range x {
		a += float64(v * y[k])
	}
	return (a + c) + (b + d)
}

// solve replaces y [n x d] by the solution x of l l' x = y.
func solve(y, l []float64, n int) {
	d := len(y) / n
	row := func(i int) []float64 { return y[i*d : (i+1)*d] }
	for i := range n {
		for k, by := range l[i*n : i*n+i] {
			subtractScaled(row(i), row(k), by)
		}
		scale(row(i), 1/l[i*n+i])
	}
	for k := n - 1; k >= 0; k-- {
		scale(row(k), 1/l[k*n+k])
		for i, by := range l[k*n : k*n+k] {
			subtractScaled(row(i), row(k), by)
		}
	}
}

func subtractScaled(dst, x []float64, by float64) {
	for j, v := range x[:len(dst)] {
		dst[j] -= float64(by * v)
	}
}

func scale(x []float64, by float64) {
	for j := range x {
		x[j] *= by
	}
}

// invert replaces the lower triangle of l [n x n] by its inverse, from the last column to the first.
func invert(l []float64, n int) {
	for j := n - 1; j >= 0; j-- {
		l[j*n+j] = 1 / l[j*n+j]
		for i := n - 1; i > j; i-- {
			sum := 0.0
			for k := j + 1; k <= i; k++ {
				sum += float64(l[i*n+k] * l[k*n+j])
			}
			l[i*n+j] = -l[j*n+j] * sum
		}
	}
}
