package partition

import (
	"runtime"

	"siafu/internal/workers"
)

// block is how many rows a worker takes at a time: few enough that a block of
// hubs doesn't keep the others waiting.
const block = 4096

// parallel calls do on pieces of 0..n-1, several at a time.
func parallel(n int, do func(lo, hi int)) {
	workers.Blocks(runtime.GOMAXPROCS(0), n, block, func(_, lo, hi int) { do(lo, hi) })
}
