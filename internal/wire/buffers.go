package wire

import (
	"math/bits"
	"sync"
	"unsafe"
)

// Memory of messages is reused within a process. The arrays of a rank are outside of Go's heap, so that
// without reuse its garbage collector runs after every few MB of received messages.
//
// Memory is reused from 4 KiB to 4 MiB, in eight sizes for each power of two.
const (
	leastPoolLog, mostPoolLog = 12, 22
	poolSteps                 = 8
)

var pools [(mostPoolLog - leastPoolLog) * poolSteps]sync.Pool // of *byte, by size

// poolClass returns the index of the smallest size of at least n bytes, and that size; -1 if memory of
// n bytes is not reused.
func poolClass(n int) (index, size int) {
	if n <= 1<<leastPoolLog || n > 1<<mostPoolLog {
		return -1, n
	}
	log := bits.Len(uint(n-1)) - 1 // 2^log < n <= 2^(log+1)
	step := 1 << log / poolSteps
	k := (n - 1<<log + step - 1) / step
	return (log-leastPoolLog)*poolSteps + k - 1, 1<<log + k*step
}

// GetBuffer returns memory of n bytes with any content.
func GetBuffer(n int) []byte {
	index, size := poolClass(n)
	if index < 0 {
		return make([]byte, n)
	}
	if first, ok := pools[index].Get().(*byte); ok {
		return unsafe.Slice(first, size)[:n]
	}
	return make([]byte, n, size)
}

// PutBuffer gives back the memory of b up to its capacity, which nobody may use afterwards. Memory of
// other sizes than those of GetBuffer is left to the garbage collector.
func PutBuffer(b []byte) {
	if index, size := poolClass(cap(b)); index >= 0 && size == cap(b) {
		pools[index].Put(unsafe.SliceData(b))
	}
}
