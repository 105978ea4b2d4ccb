package predict

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Decoded rows are wrong by at most half a unit, equal if they are encoded again, and take at most a byte more
// than float32. Rows that are not finite, or too large for a unit, stay as they are.
func TestUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, scale := range []float64{1e-30, 1e-3, 1, 1e4, 1e30, math.Inf(1), math.NaN()} {
		for _, n := range []int{0, 1, 7, 640} {
			rows := make([]float32, n)
			for i := range rows {
				if rng.IntN(3) > 0 {
					rows[i] = float32(rng.NormFloat64() * scale)
				}
			}
			for _, exponent := range []int{noUnit, -40, firstUnit, 0, 20} {
				code := encodeUnits([]byte{9}, rows, exponent)[1:]
				got, again := make([]float32, n), make([]float32, n)
				decodeUnits(got, code, exponent)
				decodeUnits(again, encodeUnits(nil, got, exponent), exponent)
				if len(code) > 4*n+1 {
					t.Errorf("scale %g, 2^%d: %d numbers take %d bytes", scale, exponent, n, len(code))
				}
				for i, x := range rows {
					// A number of more than 24 bits is rounded once more, to float32.
					most := math.Ldexp(0.5, exponent) + math.Abs(float64(x))/(1<<24)
					if d := math.Abs(float64(got[i]) - float64(x)); math.Float32bits(got[i]) != math.Float32bits(x) && !(d <= most) ||
						math.Float32bits(again[i]) != math.Float32bits(got[i]) {
						t.Fatalf("scale %g, 2^%d: %g became %g, then %g", scale, exponent, x, got[i], again[i])
					}
				}
			}
		}
	}
}

// The unit is the largest one whose error is below the bound.
func TestChooseUnit(t *testing.T) {
	rows := []float32{0.3, -1.7, 0, 5.25}
	for _, bound := range []float64{1e-6, 1e-3, 0.1, 10} {
		e := chooseUnit(rows, bound)
		if unitError(rows, math.Ldexp(1, e), math.Inf(1)) > bound ||
			e < mostUnit && unitError(rows, math.Ldexp(1, e+1), math.Inf(1)) <= bound {
			t.Errorf("bound %g: 2^%d", bound, e)
		}
	}
	exact := []float32{0.5, -0.75, 3}
	if e := chooseUnit(exact, 0); e != -2 {
		t.Errorf("exact rows: 2^%d", e)
	}
	if e := chooseUnit([]float32{float32(math.NaN())}, 1); e != noUnit {
		t.Errorf("NaN: 2^%d", e)
	}
}

// The error is bounded by the change since the newest rows of the least age.
func TestBefore(t *testing.T) {
	c := &compression{leastAge: 3}
	for epoch, want := range map[int]int{4: -1, 7: -1, 8: 2, 9: 0, 20: 1} {
		if got := c.before([]int32{6, 8, 5, 0}, epoch); got != want {
			t.Errorf("epoch %d: %d, want %d", epoch, got, want)
		}
	}
	if !slices.Contains([]int{-1}, (*compression)(nil).before([]int32{1}, 9)) {
		t.Error("rows before without compression")
	}
}
