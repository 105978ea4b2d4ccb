package partition

import (
	"runtime"

	"siafu/internal/workers"
)

// block is the number of rows in a worker's task. With larger blocks, a worker with a block of hubs
// would delay the others.
const block = 4096

// parallel divides 0..n-1 into ranges and calls do for each, concurrently.
func parallel(n int, do func(lo, hi int)) {
	workers.Blocks(runtime.GOMAXPROCS(0), n, block, func(_, lo, hi int) { do(lo, hi) })
}
