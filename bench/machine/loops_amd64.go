package machine

// assembly has the loops by set of instructions.
var assembly = map[string]loops{
	"avx512": {64, 14 * 16, multiplyAdds512, exponentials512, rows512},
	"avx2":   {32, 14 * 8, multiplyAdds256, exponentials256, rows256},
}

//go:noescape
func multiplyAdds512(n int, x, y float32)

//go:noescape
func multiplyAdds256(n int, x, y float32)

//go:noescape
func exponentials512(dst, x *float32, vectors int, constants *float32)

//go:noescape
func exponentials256(dst, x *float32, vectors int, constants *float32)

//go:noescape
func rows512(x *byte, stride, vectors int, ids *uint32, n, ahead int)

//go:noescape
func rows256(x *byte, stride, vectors int, ids *uint32, n, ahead int)

func cpuid(leaf, sub uint32) (a, b, c uint32)

// cacheSizes returns the bytes of the first two caches of data, 0 if unknown.
func cacheSizes() (l1, l2 int) {
	for sub := range uint32(4) { // Intel's leaf; AMD reserves it
		a, b, c := cpuid(4, sub)
		bytes := int(b>>22+1) * int(b>>12&1023+1) * int(b&4095+1) * int(c+1)
		switch a & 0xff { // level and type
		case 1<<5 | 1:
			l1 = bytes
		case 2<<5 | 3:
			l2 = bytes
		}
	}
	if last, _, _ := cpuid(1<<31, 0); l1 == 0 && last >= 1<<31+6 { // AMD's leaves
		_, _, c := cpuid(1<<31+5, 0)
		_, _, d := cpuid(1<<31+6, 0)
		l1, l2 = int(c>>24)<<10, int(d>>16)<<10
	}
	return l1, l2
}
