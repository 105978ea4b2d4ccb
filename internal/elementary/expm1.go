package elementary

import "math"

// Coefficients of FreeBSD's s_expm1.c.
var expm1Series = [...]float64{
	1, -3.33333333333331316428e-02, 1.58730158725481460165e-03, -7.93650757867487942473e-05,
	4.00821782732936239552e-06, -2.01099218183624371326e-07,
}

// Expm1 returns e^x - 1.
func Expm1(x float64) float64 {
	const most = 3.88162421113569373274e+01 // 56·ln2
	switch {
	case math.IsNaN(x):
		return x
	case x <= -most:
		return -1
	case x >= 7.09782712893383973096e+02:
		return math.Inf(1)
	case math.Abs(x) < 1./(1<<54):
		return x
	}
	x, c, k := reduced(x)
	half := float64(0.5 * x)
	square := float64(x * half)
	r := polynomial(square, expm1Series[:])
	t := 3 - float64(r*half)
	e := float64(square * ((r - t) / (6 - float64(x*t))))
	if k == 0 {
		return x - (float64(x*e) - square)
	}
	return raised(x, float64(x*(e-c))-c-square, k)
}

const (
	halfLn2      = 3.46573590279972654709e-01
	halfLn2Three = 1.03972077083991796413e+00 // 1.5·ln2
)

// reduced returns x - k·ln2 and its error.
func reduced(x float64) (r, c float64, k int) {
	if math.Abs(x) <= halfLn2 {
		return x, 0, 0
	}
	k = int(float64(math.Log2E*x) + math.Copysign(0.5, x))
	if math.Abs(x) < halfLn2Three {
		k = int(math.Copysign(1, x))
	}
	n := float64(k)
	hi, lo := x-float64(n*ln2Hi), float64(n*ln2Lo)
	r = hi - lo
	return r, (hi - r) - lo, k
}

// raised returns (1 + x - e)·2^k - 1, where 1 + x - e is an exponential.
func raised(x, e float64, k int) float64 {
	switch {
	case k == -1:
		return float64(0.5*(x-e)) - 0.5
	case k == 1 && x < -0.25:
		return -2 * (e - (x + 0.5))
	case k == 1:
		return 1 + float64(2*(x-e))
	case k <= -2 || k > 56:
		return shifted(1-(e-x), k) - 1
	case k < 20:
		return shifted((1-power(-k))-(e-x), k)
	}
	return shifted(x-(e+power(-k))+1, k)
}

// shifted returns x·2^k by an addition to the exponent.
func shifted(x float64, k int) float64 {
	return math.Float64frombits(math.Float64bits(x) + uint64(k)<<52)
}
