package partition

import (
	"runtime"

	"siafu/internal/workers"
)

// taskRows is the largest number of rows in a worker's task. With larger tasks, a worker with a task
// of hubs would delay the others.
const taskRows = 4096

// parallel divides 0..n-1 into ranges and calls do for each, concurrently.
func parallel(n int, do func(lo, hi int)) {
	threads := runtime.GOMAXPROCS(0)
	workers.Blocks(threads, n, min(taskRows, n/(4*threads)+1), func(_, lo, hi int) { do(lo, hi) })
}
