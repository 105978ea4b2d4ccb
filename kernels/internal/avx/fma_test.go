package avx

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// special are operands whose sums and products are halfway cases, subnormal or not finite.
var special = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, 3, 1 + 0x1p-23, -1 - 0x1p-23, 1 - 0x1p-24, 0x1p-24, -0x1p-24, 0x1p-25,
	0x1p-12 + 0x1p-35, 0x1.000002p-12, 0x1.000002p12, 0x1.fffffep12, 0x1p-126, -0x1p-126, 0x1p-149, -0x1p-149,
	0x1p-75, 0x1.8p-75, 0x1.fffffep-127,
	math.MaxFloat32, -math.MaxFloat32, 0x1p127, 0x1p-23, 0x1p23, 0x1.000002p0, 0x1.000004p-149,
	float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
}

// Every triple of special values is rounded once.
func TestFMAOfSpecialValues(t *testing.T) {
	for _, x := range special {
		for _, y := range special {
			for _, z := range special {
				checkFMA(t, x, y, z)
			}
		}
	}
}

// Random values of random exponents are rounded once, also near halfway points.
func TestFMAOfRandomValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 60000 {
		x, y := randomFloat(rng, 60), randomFloat(rng, 60)
		z := randomFloat(rng, 130)
		switch i % 3 {
		case 1:
			x, y, z = nearHalfway(rng)
		case 2:
			x, y = x*0x1p-40, y*0x1p-38 // the result may be subnormal
			z *= 0x1p-60
		}
		checkFMA(t, x, y, z)
	}
}

// randomFloat returns a number of either sign, with an exponent within the given distance of 0.
func randomFloat(rng *rand.Rand, exponent int) float32 {
	v := math.Ldexp(1+float64(rng.Uint32N(1<<23))*0x1p-23, rng.IntN(2*exponent+1)-exponent)
	if rng.Uint32N(2) == 0 {
		v = -v
	}
	return float32(v)
}

// nearHalfway returns x, 1/x rounded, and a z whose last place is 2: the product is about half of it.
func nearHalfway(rng *rand.Rand) (x, y, z float32) {
	x = 1 + float32(rng.Uint32N(1<<23))*0x1p-23
	z = float32(1<<24 + 2*rng.Uint32N(1<<23))
	if rng.Uint32N(2) == 0 {
		z = -z
	}
	return x, 1 / x, z
}

// checkFMA compares all functions with exact arithmetic. A critical element has others beside it.
func checkFMA(t *testing.T, x, y, z float32) {
	t.Helper()
	want := exactFMA(x, y, z)
	row, products := []float32{1, 2, z, 3, z}, []float32{z}
	AddScaled(row, []float32{1, 2, y, 3, y}, x)
	AddProducts(products, []float32{x}, []float32{y})
	wide := []float64{1, 2, float64(z), 3, float64(z)}
	AddScaledWide(wide, []float64{1, 2, float64(y), 3, float64(y)}, float64(x))
	for _, got := range []float32{FMA(x, y, z), row[2], row[4], products[0], float32(wide[2]), float32(wide[4])} {
		if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
			t.Fatalf("%x·%x + %x is %x, want %x", x, y, z, got, want)
		}
	}
}

// exactFMA returns x·y + z with arithmetic of any precision.
func exactFMA(x, y, z float32) float32 {
	direct := float64(x)*float64(y) + float64(z)
	if math.IsNaN(direct) || math.IsInf(direct, 0) || direct == 0 && float64(x)*float64(y) == 0 {
		return float32(direct)
	}
	p := new(big.Float).SetPrec(2000)
	p.Mul(p.SetFloat64(float64(x)), new(big.Float).SetPrec(2000).SetFloat64(float64(y)))
	s := new(big.Float).SetPrec(2000).Add(p, new(big.Float).SetFloat64(float64(z)))
	v, _ := s.Float32()
	return v
}

// The halfway cases occur among the random values: two roundings would be wrong.
func TestTwoRoundingsDiffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	wrong := 0
	for range 20000 {
		x, y, z := nearHalfway(rng)
		if float32(float64(x)*float64(y)+float64(z)) != FMA(x, y, z) {
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("no random value needs the second step")
	}
}

func BenchmarkAddScaled(b *testing.B) {
	dst, x := make([]float32, 1024), make([]float32, 1024)
	for i := range x {
		x[i] = float32(i)/1024 + 0.1
	}
	for b.Loop() {
		AddScaled(dst, x, 0.3)
	}
	b.ReportMetric(float64(len(dst))*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "elements/ns")
}
