package machine

import (
	"runtime"
	"unsafe"
)

// loops are the measured loops for a set of instructions.
type loops struct {
	bytes    int // of a vector
	elements int // to which an iteration of multiplyAdds adds
	// multiplyAdds adds x·y to the elements n times.
	multiplyAdds func(n int, x, y float32)
	// read loads blocks of blockBytes from x on.
	read func(x *byte, blocks int)
	// rows are loops for any number of vectors from 4 on, then for 1, 2, … vectors, and the same loops with
	// prefetches, which read lookAhead more ids.
	rows []rowLoop
}

// rowLoop loads vectors of n rows of x, which are stride bytes apart. n is even.
type rowLoop func(x *byte, stride, vectors int, ids *uint32, n int)

// rowLoops returns the loops for rows of the given width.
func (l *loops) rowLoops(width int) (list []rowLoop, vectors int) {
	vectors = (width + l.bytes - 1) / l.bytes
	few := len(l.rows) / 2
	k := vectors
	if k >= few {
		k = 0
	}
	return []rowLoop{l.rows[k], l.rows[k+few]}, vectors
}

const blockBytes, lookAhead = 1024, 8

// loopsOf returns the loops for a set of instructions, in Go for an unknown one.
func loopsOf(set string) loops {
	if l, ok := assembly[set]; ok {
		return l
	}
	return loops{8, 8, multiplyAddsPlain, readPlain, []rowLoop{rowsPlain, rowsPlain}}
}

// The compiler would remove plain loops whose results are not used.

func multiplyAddsPlain(n int, x, y float32) {
	var a, b, c, d, e, f, g, h float32
	for range n {
		a, b, c, d = a+x*y, b+x*y, c+x*y, d+x*y
		e, f, g, h = e+x*y, f+x*y, g+x*y, h+x*y
	}
	runtime.KeepAlive(a + b + c + d + e + f + g + h)
}

func readPlain(x *byte, blocks int) {
	var a, b, c, d uint64
	words := unsafe.Slice((*uint64)(unsafe.Pointer(x)), blocks*blockBytes/8)
	for ; len(words) >= 4; words = words[4:] {
		a, b, c, d = a|words[0], b|words[1], c|words[2], d|words[3]
	}
	runtime.KeepAlive(a | b | c | d)
}

func rowsPlain(x *byte, stride, vectors int, ids *uint32, n int) {
	var a uint64
	for _, id := range unsafe.Slice(ids, n) {
		for _, word := range unsafe.Slice((*uint64)(unsafe.Add(unsafe.Pointer(x), int(id)*stride)), vectors) {
			a |= word
		}
	}
	runtime.KeepAlive(a)
}
