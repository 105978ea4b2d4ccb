package machine

//go:generate go run ./gen -out asm_amd64.s -stubs asm_amd64.go -pkg machine

// assembly has the loops by set of instructions.
var assembly = map[string]loops{
	"avx512": {64, 24 * 16, multiplyAdds512, read512, []rowLoop{
		rows512, rowsOf1x512, rowsOf2x512, rowsOf3x512, rowsOf4x512,
		fetchedRows512, fetchedRowsOf1x512, fetchedRowsOf2x512, fetchedRowsOf3x512, fetchedRowsOf4x512,
	}},
	"avx2": {32, 14 * 8, multiplyAdds256, read256, []rowLoop{
		rows256, rowsOf1x256, rowsOf2x256, rowsOf3x256, rowsOf4x256,
		fetchedRows256, fetchedRowsOf1x256, fetchedRowsOf2x256, fetchedRowsOf3x256, fetchedRowsOf4x256,
	}},
}

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
