package partition

import (
	"runtime"

	"siafu/internal/workers"
)

// block is the number of rows that a worker processes at a time, small enough that a block of
// hubs does not delay the others.
const block = 4096

// parallel calls do on ranges of 0..n-1, several at a time.
func parallel(n int, do func(lo, hi int)) {
	workers.Blocks(runtime.GOMAXPROCS(0), n, block, func(_, lo, hi int) { do(lo, hi) })
}
