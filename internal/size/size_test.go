package size_test

import (
	"math"
	"math/big"
	"testing"

	"siafu/internal/size"
)

func TestSizes(t *testing.T) {
	const most = math.MaxInt64
	for name, tc := range map[string]struct{ got, want int64 }{
		"product":                 {size.Product[int64](3, 4, 5), 60},
		"of none":                 {size.Product[int64](), 1},
		"of zero":                 {size.Product[int64](most, 2, 0), 0},
		"too large":               {size.Product[int64](2e9, 2e9, 4), most},
		"just not":                {size.Product[int64](1<<31, 1<<31), 1 << 62},
		"wraps to small":          {size.Product[int64](1<<32, 1<<32), most},
		"stays":                   {size.Product[int64](most, most), most},
		"sum":                     {size.Sum[int64](3, 4, 5), 12},
		"sum of none":             {size.Sum[int64](), 0},
		"sum too large":           {size.Sum[int64](most, 1), most},
		"sum to the brim":         {size.Sum[int64](most-1, 1), most},
		"rounded":                 {size.RoundUp[int64](65, 64), 128},
		"round":                   {size.RoundUp[int64](128, 64), 128},
		"rounded nothing":         {size.RoundUp[int64](0, 64), 0},
		"rounded beyond the most": {size.RoundUp[int64](most, 64), most},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %d, expected %d", name, tc.got, tc.want)
		}
	}
}

// Products and sums equal unbounded ones, up to the bound.
func FuzzSizes(f *testing.F) {
	f.Add(int64(2e9), int64(2e9), int64(4))
	f.Add(int64(0), int64(math.MaxInt64), int64(1))
	f.Fuzz(func(t *testing.T, x, y, z int64) {
		x, y, z = x&math.MaxInt64, y&math.MaxInt64, z&math.MaxInt64
		a, b, c := big.NewInt(x), big.NewInt(y), big.NewInt(z)
		product := new(big.Int).Mul(new(big.Int).Mul(a, b), c)
		sum := new(big.Int).Add(new(big.Int).Add(a, b), c)
		for want, got := range map[*big.Int]int64{product: size.Product(x, y, z), sum: size.Sum(x, y, z)} {
			if want.IsInt64() && want.Int64() != got || !want.IsInt64() && got != size.Most {
				t.Errorf("%d %d %d: %d, expected %v", x, y, z, got, want)
			}
		}
	})
}

func TestParse(t *testing.T) {
	for text, want := range map[string]int64{
		"100": 100, "100b": 100, "380M": 380e6, "380MB": 380e6, "380MiB": 380 << 20, "380Mi": 380 << 20, "380 mib": 380 << 20,
		"1.5g": 1.5e9, "64k": 64e3, "2T": 2e12, "1Ti": 1 << 40,
		"": 0, "0": 0, "M": 0, "380x": 0, "380i": 0, "380Mbb": 0, "380Mbit": 0, "-1M": 0, "9e9": 0, "9999999T": 0,
	} {
		if got, ok := size.Parse(text); got != want || ok != (want > 0) {
			t.Errorf("%q: %d, %v, expected %d", text, got, ok, want)
		}
	}
}
