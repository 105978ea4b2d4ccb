// Package buffers reuses the memory of messages within a process. The arrays of a rank are outside
// of Go's heap, so that without reuse its garbage collector runs after every few MB of received
// messages.
package buffers

import (
	"math/bits"
	"sync"
	"unsafe"
)

// Memory is reused from 4 KiB to 4 MiB, in eight sizes for each power of two.
const (
	leastLog, mostLog = 12, 22
	steps             = 8
)

var pools [(mostLog - leastLog) * steps]sync.Pool // of *byte, by size

// class returns the index of the smallest size of at least n bytes, and that size; -1 if memory of
// n bytes is not reused.
func class(n int) (index, size int) {
	if n <= 1<<leastLog || n > 1<<mostLog {
		return -1, n
	}
	log := bits.Len(uint(n-1)) - 1 // 2^log < n <= 2^(log+1)
	step := 1 << log / steps
	k := (n - 1<<log + step - 1) / step
	return (log-leastLog)*steps + k - 1, 1<<log + k*step
}

// Get returns memory of n bytes with any content.
func Get(n int) []byte {
	index, size := class(n)
	if index < 0 {
		return make([]byte, n)
	}
	if first, ok := pools[index].Get().(*byte); ok {
		return unsafe.Slice(first, size)[:n]
	}
	return make([]byte, n, size)
}

// Put gives back the memory of b up to its capacity, which nobody may use afterwards. Memory of
// other sizes than those of Get is left to the garbage collector.
func Put(b []byte) {
	if index, size := class(cap(b)); index >= 0 && size == cap(b) {
		pools[index].Put(unsafe.SliceData(b))
	}
}
