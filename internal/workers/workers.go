// Package workers runs pieces of work concurrently. The assignment of pieces to goroutines
// changes from run to run; a result must not depend on it.
package workers

import (
	"sync"
	"sync/atomic"
)

// Blocks calls do on pieces [lo, hi) of 0..n-1 with at most size elements each. Pieces run
// concurrently on at most the given number of workers, numbered from 0. A worker that has
// finished a piece takes the next one.
func Blocks(workers, n, size int, do func(worker, lo, hi int)) {
	var next atomic.Int64
	Each(min(workers, (n+size-1)/size), func(worker int) {
		for {
			lo := int(next.Add(int64(size))) - size
			if lo >= n {
				return
			}
			do(worker, lo, min(lo+size, n))
		}
	})
}

// Each calls do(0) to do(n-1) concurrently and waits for all of them.
func Each(n int, do func(i int)) {
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
