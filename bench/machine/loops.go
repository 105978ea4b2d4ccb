package machine

import (
	"math"
	"runtime"
	"unsafe"
)

// loops are the measured loops for a set of instructions.
type loops struct {
	bytes    int // of a vector
	elements int // to which a step of multiplyAdds adds
	// multiplyAdds adds x·y to the elements n times.
	multiplyAdds func(n int, x, y float32)
	// exponentials sets vectors of dst to e^x, for |x| < 87, with the constants of this name.
	exponentials func(dst, x *float32, vectors int, constants *float32)
	// rows loads vectors of n rows of x, which are stride bytes apart. Unless ahead is 0, it prefetches the row
	// with that many ids between.
	rows func(x *byte, stride, vectors int, ids *uint32, n, ahead int)
}

// loopsOf returns the loops for a set of instructions, in Go for an unknown one.
func loopsOf(set string) loops {
	if l, ok := assembly[set]; ok {
		return l
	}
	return loops{8, 8, multiplyAddsPlain, exponentialsPlain, rowsPlain}
}

// constants of exponentials: log2 e, the shift that rounds to an integer, ln 2, and a Taylor polynomial.
var constants = [9]float32{math.Log2E, 3 << 22, math.Ln2, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2, 1}

// The compiler would remove plain loops whose results are not used.

func multiplyAddsPlain(n int, x, y float32) {
	var a, b, c, d, e, f, g, h float32
	for range n {
		a, b, c, d = a+x*y, b+x*y, c+x*y, d+x*y
		e, f, g, h = e+x*y, f+x*y, g+x*y, h+x*y
	}
	runtime.KeepAlive(a + b + c + d + e + f + g + h)
}

func exponentialsPlain(dst, x *float32, vectors int, constants *float32) {
	c, to := *(*[9]float32)(unsafe.Pointer(constants)), unsafe.Slice(dst, 2*vectors)
	for i, v := range unsafe.Slice(x, len(to)) {
		n := v*c[0] + c[1]
		v -= (n - c[1]) * c[2]
		p := (((((c[3]*v+c[4])*v+c[5])*v+c[6])*v+c[7])*v+c[8])*v + c[8]
		to[i] = math.Float32frombits(math.Float32bits(p) + math.Float32bits(n)<<23)
	}
}

func rowsPlain(x *byte, stride, vectors int, ids *uint32, n, _ int) {
	var a uint64
	for _, id := range unsafe.Slice(ids, n) {
		for _, word := range unsafe.Slice((*uint64)(unsafe.Add(unsafe.Pointer(x), int(id)*stride)), vectors) {
			a |= word
		}
	}
	runtime.KeepAlive(a)
}
