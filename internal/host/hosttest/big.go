package hosttest

import "os"

// Big reports whether the long variants of tests are to run, which take minutes or tens of
// gigabytes: SIAFU_BIG=1, as "make test-long" has it.
func Big() bool { return os.Getenv("SIAFU_BIG") == "1" }

// Sampled selects every n-th case of a product by the sum of the indices of its factors. With
// two factors, each value of either is left in some case; with three, each pair of values is,
// where every factor has n values at least. The long variants have all cases.
func Sampled(n int, indices ...int) bool {
	sum := 0
	for _, i := range indices {
		sum += i
	}
	return sum%n == 0 || Big()
}
