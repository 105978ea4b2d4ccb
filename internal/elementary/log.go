package elementary

import "math"

// ln2 in two parts; the product of the first part and an exponent is exact.
const (
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
)

// Coefficients of FreeBSD's e_log.c and s_log1p.c.
var logSeries = [...]float64{
	6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
	1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01,
}

// Log returns the natural logarithm of x, which is not subnormal.
func Log(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	f, exponent := math.Frexp(x)
	k := float64(exponent)
	if f <= math.Sqrt2/2 {
		f, k = 2*f, k-1
	}
	f--
	s := f / (2 + f)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	c := &logSeries
	t1 := float64(s2 * (c[0] + float64(s4*(c[2]+float64(s4*(c[4]+float64(s4*c[6])))))))
	t2 := float64(s4 * (c[1] + float64(s4*(c[3]+float64(s4*c[5])))))
	half := float64(0.5 * f * f)
	return float64(k*ln2Hi) - ((half - (float64(s*(half+(t1+t2))) + float64(k*ln2Lo))) - f)
}

// Log1p returns log(1+x) for x in [0, 1].
func Log1p(x float64) float64 {
	const small = 1. / (1 << 29)
	switch {
	case math.IsNaN(x) || x < 1./(1<<54):
		return x
	case x < small:
		return x - float64(x*x*0.5)
	}
	f, c, k := x, 0.0, 0.0
	if x >= math.Sqrt2-1 {
		u := 1 + x
		c = x - (u - 1)
		if u >= 2 {
			c = 1 - (u - x)
		}
		c /= u
		if u >= math.Sqrt2 {
			u, k = u/2, 1
		}
		f = u - 1
	}
	half := float64(0.5 * f * f)
	if f == 0 {
		return float64(k*ln2Hi) + (c + float64(k*ln2Lo))
	}
	s := f / (2 + f)
	z := float64(s * s)
	r := float64(z * polynomial(z, logSeries[:]))
	if k == 0 {
		return f - (half - float64(s*(half+r)))
	}
	return float64(k*ln2Hi) - ((half - (float64(s*(half+r)) + (float64(k*ln2Lo) + c))) - f)
}
