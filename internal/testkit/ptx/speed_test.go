package ptx

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkSpMM measures thread instructions per second.
func BenchmarkSpMM(b *testing.B) {
	l := newLab(b, Settings{})
	r := rand.New(rand.NewPCG(17, 18))
	const rows, width, degree = 200, 64, 16
	offsets, cols := make([]int64, rows+1), make([]uint32, rows*degree)
	for i := range cols {
		cols[i] = uint32(i * 7919 % rows)
		offsets[i/degree+1] = int64(i + 1)
	}
	f := l.file("spmm.ptx", "spmm")
	a := args().Int32(width).Ptr(upload(l, offsets)).Ptr(upload(l, cols)).Ptr(upload(l, randoms(r, len(cols)))).
		Ptr(upload(l, randoms(r, rows*width))).Ptr(l.empty(4 * rows * width))
	b.ResetTimer()
	for range b.N {
		l.ok(l.launch(f, rows, 64, 0, a))
	}
	b.ReportMetric(float64(l.d.Instructions())/1e6/b.Elapsed().Seconds(), "Minstr/s")
}

// BenchmarkMatMul does the same with a tiled product, with shared memory and barriers.
func BenchmarkMatMul(b *testing.B) {
	l := newLab(b, Settings{})
	r := rand.New(rand.NewPCG(19, 20))
	f := l.file("matmul.ptx", "matmul")
	const n = 128
	a := args().Int32(n).Int32(n).Int32(n).Ptr(upload(l, randoms(r, n*n))).Ptr(upload(l, randoms(r, n*n))).Ptr(l.empty(4 * n * n))
	b.ResetTimer()
	for range b.N {
		l.ok(l.s.Launch(f, grid(n/16, n/16, 16, 16), a))
		l.ok(l.s.Synchronize())
	}
	b.ReportMetric(float64(l.d.Instructions())/1e6/b.Elapsed().Seconds(), "Minstr/s")
}

// BenchmarkLaunch launches one block that does almost nothing.
func BenchmarkLaunch(b *testing.B) {
	l := newLab(b, Settings{})
	f := l.file("matmul.ptx", "matmul")
	p := l.empty(4)
	a := args().Int32(0).Int32(0).Int32(0).Ptr(p).Ptr(p).Ptr(p)
	b.ReportAllocs()
	for range b.N {
		l.ok(l.s.Launch(f, grid(1, 1, 16, 16), a))
		l.ok(l.s.Synchronize())
	}
}
