package ptx

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"siafu/cuda/device"
)

// lab is a device with one stream. Errors end the test.
type lab struct {
	t testing.TB
	d *Device
	s device.Stream
}

func newLab(t testing.TB, s Settings) *lab {
	t.Helper()
	d := New(s)
	stream, err := d.NewStream()
	l := &lab{t, d, stream}
	l.ok(err)
	t.Cleanup(func() { d.Close() })
	return l
}

func (l *lab) ok(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// function returns a function of a module's text.
func (l *lab) function(text, name string) device.Function {
	l.t.Helper()
	m, err := l.d.Load(name+".ptx", text)
	l.ok(err)
	f, err := m.Function(name)
	l.ok(err)
	return f
}

// file returns a function of a module in testdata.
func (l *lab) file(file, name string) device.Function {
	l.t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	l.ok(err)
	return l.function(string(text), name)
}

// empty returns unwritten memory.
func (l *lab) empty(bytes int) device.Ptr {
	l.t.Helper()
	p, err := l.d.Alloc(bytes)
	l.ok(err)
	return p
}

// upload returns memory with the given numbers.
func upload[T int32 | uint32 | int64 | uint64 | float32 | float64 | uint16 | uint8](l *lab, x []T) device.Ptr {
	l.t.Helper()
	b, err := binary.Append(nil, binary.LittleEndian, x)
	l.ok(err)
	p := l.empty(len(b))
	l.ok(l.s.CopyIn(p, b))
	return p
}

// read fills x with memory.
func read[T any](l *lab, x []T, p device.Ptr) []T {
	l.t.Helper()
	b := make([]byte, binary.Size(x))
	l.ok(l.s.CopyOut(b, p))
	_, err := binary.Decode(b, binary.LittleEndian, x)
	l.ok(err)
	return x
}

// launch runs f and waits for it.
func (l *lab) launch(f device.Function, blocks, threads, shared int, args *device.Args) error {
	l.t.Helper()
	l.ok(l.s.Launch(f, device.Launch{Grid: [3]int{blocks}, Block: [3]int{threads}, Shared: shared}, args))
	return l.s.Synchronize()
}

func randoms(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// grid returns a launch of bx x by blocks of tx x ty threads.
func grid(bx, by, tx, ty int) device.Launch {
	return device.Launch{Grid: [3]int{bx, by}, Block: [3]int{tx, ty}}
}

func args() *device.Args { return &device.Args{} }

// same compares bits.
func same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// fma returns a b + c with one rounding.
func fma(a, b, c float32) float32 { return fused(a, b, c) }

// TestSaxpy adds vectors whose length is no multiple of a block's.
func TestSaxpy(t *testing.T) {
	l := newLab(t, Settings{})
	r := rand.New(rand.NewPCG(1, 2))
	x, y := randoms(r, 1000), randoms(r, 1000)
	want := make([]float32, len(x))
	for i := range x {
		want[i] = fma(1.5, x[i], y[i])
	}
	px, py := upload(l, x), upload(l, y)
	l.ok(l.launch(l.file("saxpy.ptx", "saxpy"), 8, 128, 0, args().Int32(1000).Float32(1.5).Ptr(px).Ptr(py)))
	same(t, "saxpy", read(l, make([]float32, 1000), py), want)
	// All threads run 7 instructions up to the branch, and ret; threads below n run 12 more,
	// and fall through to the next block.
	if n := l.d.Instructions(); n != 1024*8+1000*13 {
		t.Errorf("%d instructions", n)
	}

	py = upload(l, y)
	l.ok(l.launch(l.file("saxpy.ptx", "saxpy4"), 3, 32, 0, args().Int32(250).Float32(1.5).Ptr(px).Ptr(py)))
	same(t, "saxpy4", read(l, make([]float32, 1000), py), want)
}

// TestSaxpyOnDevices runs kernels that are compiled once on several devices at the same time, with
// arrays at equal addresses. Each device reads and writes its own arrays.
func TestSaxpyOnDevices(t *testing.T) {
	for n := range 3 {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, Settings{})
			x, y := []float32{float32(n), 2}, []float32{3, float32(n)}
			px, py := upload(l, x), upload(l, y)
			f := l.file("saxpy.ptx", "saxpy")
			for range 2000 {
				l.ok(l.launch(f, 1, 32, 0, args().Int32(2).Float32(1.5).Ptr(px).Ptr(py)))
				y[0], y[1] = fma(1.5, x[0], y[0]), fma(1.5, x[1], y[1])
			}
			same(t, "saxpy", read(l, make([]float32, 2), py), y)
		})
	}
}

// TestMatMul multiplies matrices whose extents are no multiples of a tile's.
func TestMatMul(t *testing.T) {
	l := newLab(t, Settings{})
	f := l.file("matmul.ptx", "matmul")
	r := rand.New(rand.NewPCG(3, 4))
	for _, s := range [][3]int{{1, 1, 1}, {16, 16, 16}, {33, 17, 40}, {5, 70, 31}, {20, 20, 0}} {
		m, n, k := s[0], s[1], s[2]
		a, b := randoms(r, m*k), randoms(r, k*n)
		want := make([]float32, m*n)
		for i := range m {
			for j := range n {
				for p := range k {
					want[i*n+j] = fma(a[i*k+p], b[p*n+j], want[i*n+j])
				}
			}
		}
		pa, pb, pc := upload(l, a), upload(l, b), l.empty(4*m*n)
		grid := device.Launch{Grid: [3]int{(n + 15) / 16, (m + 15) / 16}, Block: [3]int{16, 16}}
		l.ok(l.s.Launch(f, grid, args().Int32(int32(m)).Int32(int32(n)).Int32(int32(k)).Ptr(pa).Ptr(pb).Ptr(pc)))
		same(t, "matmul", read(l, make([]float32, m*n), pc), want)
	}
}

// warpTotal adds in the order of a warp with shuffles.
func warpTotal(x []float32) float32 {
	v := make([]float32, lanes)
	copy(v, x)
	for n := lanes / 2; n > 0; n /= 2 {
		next := append([]float32(nil), v...)
		for i := range v {
			j := i + n
			if j >= lanes {
				j = i
			}
			next[i] = v[i] + v[j]
		}
		v = next
	}
	return v[0]
}

// TestReductions sums with shuffles, and with shared memory of dynamic size.
func TestReductions(t *testing.T) {
	l := newLab(t, Settings{})
	x := randoms(rand.New(rand.NewPCG(5, 6)), 1000)
	px, sums := upload(l, x), l.empty(4*8)
	l.ok(l.launch(l.file("reduce.ptx", "warpSums"), 2, 128, 0, args().Ptr(px).Ptr(sums)))
	want := make([]float32, 8)
	for i := range want {
		want[i] = warpTotal(x[32*i : 32*i+32])
	}
	same(t, "warpSums", read(l, make([]float32, 8), sums), want)

	const blocks, threads = 3, 96
	for b := range blocks {
		mine := make([]float32, threads)
		for i := range x {
			if i/threads%blocks == b {
				mine[i%threads] += x[i]
			}
		}
		var warps []float32
		for w := 0; w < threads; w += lanes {
			warps = append(warps, warpTotal(mine[w:w+lanes]))
		}
		want[b] = warpTotal(warps)
	}
	l.ok(l.launch(l.file("reduce.ptx", "blockSums"), blocks, threads, threads/lanes*4, args().Int64(1000).Ptr(px).Ptr(sums)))
	same(t, "blockSums", read(l, make([]float32, blocks), sums), want[:blocks])
}

// TestHistogram counts with atomics, in shared memory and then in global.
func TestHistogram(t *testing.T) {
	l := newLab(t, Settings{})
	r := rand.New(rand.NewPCG(7, 8))
	x, want := make([]uint32, 3000), make([]int32, 64)
	for i := range x {
		x[i] = r.Uint32()
		want[x[i]%64]++
	}
	px, counts := upload(l, x), upload(l, make([]int32, 64))
	l.ok(l.launch(l.file("histogram.ptx", "histogram"), 4, 160, 0, args().Int32(3000).Ptr(px).Ptr(counts)))
	for i, n := range read(l, make([]int32, 64), counts) {
		if n != want[i] {
			t.Errorf("bin %d has %d, want %d", i, n, want[i])
		}
	}
}

// TestSpMM multiplies with a sparse matrix with some empty rows.
func TestSpMM(t *testing.T) {
	l := newLab(t, Settings{})
	r := rand.New(rand.NewPCG(9, 10))
	const rows, width = 50, 70
	offsets := []int64{0}
	var cols []uint32
	for i := range rows {
		for range i % 5 * r.IntN(10) {
			cols = append(cols, uint32(r.IntN(rows)))
		}
		offsets = append(offsets, int64(len(cols)))
	}
	weights, x := randoms(r, len(cols)), randoms(r, rows*width)
	want := make([]float32, rows*width)
	for i := range rows {
		for e := offsets[i]; e < offsets[i+1]; e++ {
			for c := range width {
				want[i*width+c] = fma(weights[e], x[int(cols[e])*width+c], want[i*width+c])
			}
		}
	}
	y := l.empty(4 * rows * width)
	l.ok(l.launch(l.file("spmm.ptx", "spmm"), rows, 32, 0,
		args().Int32(width).Ptr(upload(l, offsets)).Ptr(upload(l, cols)).Ptr(upload(l, weights)).Ptr(upload(l, x)).Ptr(y)))
	same(t, "spmm", read(l, make([]float32, rows*width), y), want)
}

// TestMissingBarriers removes each barrier from clang's kernels, and expects the race to be
// found.
func TestMissingBarriers(t *testing.T) {
	for _, c := range []struct {
		file, name string
		run        func(l *lab, f device.Function) error
	}{
		{"matmul.ptx", "matmul", func(l *lab, f device.Function) error {
			a := upload(l, make([]float32, 40*40))
			l.ok(l.s.Launch(f, grid(3, 3, 16, 16), args().Int32(40).Int32(40).Int32(40).Ptr(a).Ptr(a).Ptr(l.empty(6400))))
			return l.s.Synchronize()
		}},
		{"histogram.ptx", "histogram", func(l *lab, f device.Function) error {
			x, counts := upload(l, make([]uint32, 3000)), upload(l, make([]int32, 64))
			return l.launch(f, 4, 160, 0, args().Int32(3000).Ptr(x).Ptr(counts))
		}},
		{"reduce.ptx", "blockSums", func(l *lab, f device.Function) error {
			x := upload(l, make([]float32, 1000))
			return l.launch(f, 3, 96, 12, args().Int64(1000).Ptr(x).Ptr(l.empty(12)))
		}},
	} {
		text, err := os.ReadFile("testdata/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.SplitAfter(string(text), "\n")
		for i, line := range parts {
			if !strings.Contains(line, "bar.sync") {
				continue
			}
			parts[i] = "\n"
			l := newLab(t, Settings{})
			var got *Finding
			err := c.run(l, l.function(strings.Join(parts, ""), c.name))
			if !errors.As(err, &got) || got.Kind != Race && got.Kind != Uninitialised {
				t.Errorf("%s without line %d: %v", c.file, i+1, err)
			}
			parts[i] = line
		}
		l := newLab(t, Settings{})
		l.ok(c.run(l, l.function(strings.Join(parts, ""), c.name)))
	}
}
