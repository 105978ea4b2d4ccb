package hosttest

import (
	"os"
	"time"
)

// Patience is how long a test waits for something that must happen. Only a hang takes that long: a busy
// machine needs much less, so the limit costs nothing. A test of a delay that a user notices has its own limit.
const Patience = 10 * time.Minute

// Big reports whether to run the long variants of tests, which take minutes or tens of
// gigabytes: SIAFU_BIG=1, as "make test-long" sets it.
func Big() bool { return os.Getenv("SIAFU_BIG") == "1" }

// Sampled selects about every n-th case of a product of lists, those where n divides the sum of
// the indices. If each list has at least n values, two lists keep each value in some case, and
// three lists keep each pair of values. The long variants run all cases.
func Sampled(n int, indices ...int) bool {
	sum := 0
	for _, i := range indices {
		sum += i
	}
	return sum%n == 0 || Big()
}
