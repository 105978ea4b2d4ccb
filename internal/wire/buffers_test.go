package wire

import "testing"

// Sizes ascend with their classes, and exceed the length by less than an eighth.
func TestBufferClasses(t *testing.T) {
	last, lastSize := -1, 0
	for n := 1; n <= 1<<mostPoolLog+1; n += 1 + n/999 {
		index, size := poolClass(n)
		switch {
		case n <= 1<<leastPoolLog || n > 1<<mostPoolLog:
			if index != -1 || size != n {
				t.Fatalf("%d bytes: class %d of %d bytes", n, index, size)
			}
			continue
		case size < n || 8*(size-n) >= n || index < last || index > last+1 || (size == lastSize) != (index == last):
			t.Fatalf("%d bytes: class %d of %d bytes, after class %d of %d", n, index, size, last, lastSize)
		}
		if i, s := poolClass(size); i != index || s != size {
			t.Fatalf("%d bytes: class %d of %d bytes, but these are class %d of %d", n, index, size, i, s)
		}
		last, lastSize = index, size
	}
	if last != len(pools)-1 {
		t.Errorf("the last class is %d of %d", last, len(pools))
	}
}

// Memory of GetBuffer comes back, and other memory does not.
func TestBuffersAreReused(t *testing.T) {
	const n = 60 << 10
	allocations := testing.AllocsPerRun(100, func() {
		b := GetBuffer(n)
		b[n-1] = 1
		PutBuffer(b)
	})
	if allocations > 0.5 { // a collection empties the pools
		t.Errorf("%g allocations for each message", allocations)
	}
	for _, b := range [][]byte{nil, make([]byte, n-1), GetBuffer(n)[1:], make([]byte, 10)} {
		if index, size := poolClass(cap(b)); index >= 0 && size == cap(b) {
			t.Errorf("memory of %d bytes is reused", cap(b))
		}
	}
}
