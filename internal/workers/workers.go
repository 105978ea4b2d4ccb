// Package workers does pieces of work at the same time. Which goroutine gets
// which piece changes from run to run; a piece must not depend on it.
package workers

import (
	"sync"
	"sync/atomic"
)

// Blocks calls do on pieces of 0..n-1 of at most size, at the same time in at
// most the given number of workers, which are numbered from 0. Each worker
// takes the next piece when it has done one.
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

// Each calls do(0) to do(n-1) at the same time.
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
