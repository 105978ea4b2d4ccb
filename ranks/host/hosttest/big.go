package hosttest

import "os"

// Big tells whether the long variants of tests were asked for, which take minutes or
// tens of gigabytes: SIAFU_BIG=1, as "make test-long" has it.
func Big() bool { return os.Getenv("SIAFU_BIG") == "1" }
