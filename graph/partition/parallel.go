package partition

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// block is how many rows a worker takes at a time: few enough that a block of
// hubs doesn't keep the others waiting.
const block = 4096

// parallel calls do on pieces of 0..n-1, several at a time.
func parallel(n int, do func(lo, hi int)) {
	var next atomic.Int64
	workers := min(runtime.GOMAXPROCS(0), (n+block-1)/block)
	parallelChunks(workers, func(int) {
		for {
			lo := int(next.Add(block)) - block
			if lo >= n {
				return
			}
			do(lo, min(lo+block, n))
		}
	})
}

// parallelChunks calls do(0) to do(n-1) at the same time.
func parallelChunks(n int, do func(i int)) {
	if n == 1 {
		do(0)
		return
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}
