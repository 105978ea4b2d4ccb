package codec_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"siafu/halo/codec"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// names are codecs of every kind, also with parameters and compressors.
var names = withKinds(
	"none", "s2", "zstd", "zeros", "zeros+zstd", "bf16", "bf16+s2", "bf16+zstd", "int8", "int8+s2", "int4", "int4+zstd", "int2",
	"adaptive", "adaptive:2", "adaptive:7+zstd", "polyline", "polyline:0", "polyline:9", "polyline:2+s2",
)

// withKinds adds the kinds that names lacks, with and without a compressor.
func withKinds(names ...string) []string {
	for _, base := range codec.Bases() {
		if !slices.Contains(names, base) {
			names = append(names, base, base+"+zstd")
		}
	}
	return names
}

func named(t testing.TB, name string) codec.Codec {
	t.Helper()
	c, err := codec.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNames(t *testing.T) {
	for _, name := range append([]string{"int4+ef", "polyline:3+zstd+ef"}, names...) {
		if got := named(t, name).Name(); got != name {
			t.Errorf("%s is called %s", name, got)
		}
	}
	for name, want := range map[string]string{"adaptive:4": "adaptive", "polyline:4": "polyline", "none+s2": "s2"} {
		if got := named(t, name).Name(); got != want {
			t.Errorf("%s is called %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{
		"", "gzip", "int4:3", "adaptive:1", "adaptive:9", "polyline:x", "polyline:10", "polyline:", "none+ef",
		"s2+ef", "zeros+ef", "zeros:1",
		"int4+gzip", "int4+ef+zstd", "int4+", "+zstd", "zstd:1", "int4+zstd+s2",
	} {
		if _, err := codec.ByName(name); err == nil || !strings.Contains(err.Error(), codec.Names()) {
			t.Errorf("codec %q: %v", name, err)
		}
	}
	for name, want := range map[string]string{"s2": "s2", "none": "none", "bf16+zstd": "none", "int4+ef": "none"} {
		if got := codec.Exact(named(t, name)).Name(); got != want {
			t.Errorf("instead of %s rows that stay travel by %s, want %s", name, got, want)
		}
	}
	for _, name := range codec.Automatic(codec.Classes()[0]) {
		if !named(t, name).Lossless() {
			t.Errorf("codec %s is said to be exact", name)
		}
	}
	seen := map[codec.ID]string{}
	for _, name := range names {
		id := named(t, name).ID()
		if seen[id] != "" {
			t.Errorf("%s and %s have one id", name, seen[id])
		}
		seen[id] = name
	}
}

// noise returns n numbers between -1 and 1.
func noise(n int, seed uint32) []float32 {
	x := make([]float32, n)
	for i := range x {
		w := kernels.Philox([4]uint32{uint32(i), seed}, [2]uint32{1})
		x[i] = (float32(w[0]>>8) - float32(w[1]>>8)) / (1 << 24)
	}
	return x
}

// kinds returns rows of every kind, concatenated.
func kinds(cols int) []float32 {
	inf := float32(math.Inf(1))
	odd := []uint32{0, 1 << 31, 1, 0x7f800000, 0xff800000, 0x7fc00001, 0xffc12345, 0x007fffff, 0x3f800000, 0x12345678, 0xffffffff, 2}
	var x []float32
	for _, f := range []func(j int, v float32) float32{
		func(_ int, v float32) float32 { return v },
		func(_ int, v float32) float32 { return max(v, 0) },
		func(int, float32) float32 { return 0 },
		func(int, float32) float32 { return float32(math.Copysign(0, -1)) },
		func(int, float32) float32 { return -3.5 },
		func(int, float32) float32 { return 1003.9 },
		func(_ int, v float32) float32 { return v * 1e-41 },
		func(_ int, v float32) float32 { return v * 1e-20 },
		func(_ int, v float32) float32 { return v * 1e37 },
		func(_ int, v float32) float32 { return v * math.MaxFloat32 },
		func(j int, v float32) float32 { return []float32{v, inf}[min(j, 1)] },
		func(j int, v float32) float32 { return []float32{inf - inf, v}[min(j, 1)] },
		func(j int, _ float32) float32 { return math.Float32frombits(odd[j%len(odd)]) },
		func(j int, v float32) float32 { return v + float32(j*j) },
	} {
		for j, v := range noise(cols, uint32(len(x))) {
			x = append(x, f(j, v))
		}
	}
	return x
}

// bound returns the largest error of an element of row: of a codec that this function does not know
// the largest magnitude in the row.
func bound(c codec.Codec, row []float32, x float32) float64 {
	name, size := c.Name(), math.Abs(float64(x))
	base, _, _ := strings.Cut(name, "+")
	base, param, _ := strings.Cut(base, ":")
	switch base {
	case "bf16":
		return size/(1<<8) + 1e-40 // subnormal
	case "int8":
		return step(row, 255)
	case "int4":
		return step(row, 15)
	case "int2", "adaptive":
		return step(row, 3)
	case "polyline":
		decimals := 4
		if param != "" {
			fmt.Sscan(param, &decimals)
		}
		return 0.5*math.Pow10(-decimals)*(1+1e-9) + size/(1<<24)
	}
	largest := 0.0
	for _, v := range row {
		if size := math.Abs(float64(v)); !c.Lossless() && size <= math.MaxFloat32 {
			largest = max(largest, size)
		}
	}
	return largest
}

// sharing returns the elements that share row i's grid. Narrow rows share it with adjacent
// rows.
func sharing(name string, src codec.Rows, i int) []float32 {
	if !strings.HasPrefix(name, "int") {
		return src.Row(i)
	}
	each := kernels.GridRows(src.Cols)
	from := i / each * each
	return src.X[from*src.Cols : min(from+each, src.Len)*src.Cols]
}

// step bounds the step of a row's grid: it spans the row from the bfloat16 below its least
// element, and is rounded up to a bfloat16.
func step(row []float32, steps float64) float64 {
	lo, hi := float64(slices.Min(row)), float64(slices.Max(row))
	return max((hi-lo+math.Abs(lo)/(1<<7))/steps*(1+1.0/(1<<7)), 1.0/(1<<110)) + math.Abs(lo)/(1<<23)
}

func finite(row []float32) bool {
	return !slices.ContainsFunc(row, func(v float32) bool { return math.IsNaN(float64(v) * 0) })
}

// Every codec restores rows of every kind within its bound, and rows that are not finite to
// the bit (bfloat16: the nearest). It adds them if requested. Payloads have the length that
// Size returns.
func TestRoundTrip(t *testing.T) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			c := named(t, name)
			for _, cols := range []int{1, 2, 3, 7, 8, 16, 17, 41, 128} {
				x := kinds(cols)
				for _, rows := range []int{0, 1, len(x) / cols} {
					src := codec.Rows{X: x[:rows*cols], Cols: cols, Len: rows}
					checkRoundTrip(t, c, src)
				}
			}
		})
	}
}

func checkRoundTrip(t *testing.T, c codec.Codec, src codec.Rows) {
	t.Helper()
	payload := c.Encode([]byte("before"), src, codec.Key{Seed: 3, Epoch: 1, Layer: 2})[len("before"):]
	got, sum := make([]float32, len(src.X)), noise(len(src.X), 77)
	start := slices.Clone(sum)
	for add, dst := range map[bool][]float32{false: got, true: sum} {
		if err := c.Decode(codec.Rows{X: dst, Cols: src.Cols, Len: src.Len}, payload, add); err != nil {
			t.Fatalf("%d rows of %d: %v", src.Len, src.Cols, err)
		}
	}
	raws := 0
	for i := range src.Len {
		row := sharing(c.Name(), src, i)
		if !finite(row) || slices.Max(row) > 1e38 || slices.Min(row) < -1e38 {
			raws++
		}
		for j, x := range src.Row(i) {
			at := i*src.Cols + j
			v := got[at]
			if want := start[at] + v; math.Float32bits(sum[at]) != math.Float32bits(want) && want == want {
				t.Fatalf("%v added to %v is %v", v, start[at], sum[at])
			}
			switch {
			case x != x:
				if v == v {
					t.Fatalf("row %d of width %d: NaN becomes %v", i, src.Cols, v)
				}
			case x == v:
			case !(math.Abs(float64(v)-float64(x)) <= bound(c, row, x)):
				t.Fatalf("row %d of width %d: %v becomes %v, bound %v", i, src.Cols, x, v, bound(c, row, x))
			}
		}
	}
	if c.Lossless() && !slices.Equal(mapped.Bytes(got), mapped.Bytes(src.X)) {
		t.Fatalf("%d rows of %d are not the same bits", src.Len, src.Cols)
	}
	size, fixed := c.Size(src.Len, src.Cols)
	if most := size + 4*raws*src.Cols; len(payload) > most || fixed && raws == 0 && len(payload) != size {
		t.Fatalf("%d rows of %d, %d of them raw: %d bytes, want %d (fixed: %v)", src.Len, src.Cols, raws, len(payload), size, fixed)
	}
}

// An encoded row depends on its id, not on adjacent rows, its index or its matrix. Exceptions:
// the bits of adaptive, and the shared grids of narrow rows.
func TestRowsAreIndependent(t *testing.T) {
	const rows, cols = 40, 33
	x := noise(rows*cols, 5)
	all := codec.Rows{X: x, Cols: cols, Len: rows}
	for r := range rows {
		all.IDs = append(all.IDs, uint32(1000+r))
	}
	for _, name := range []string{"bf16", "int8", "int4+s2", "int2", "polyline"} {
		c, k := named(t, name), codec.Key{Seed: 1, Epoch: 7, Backward: true}
		whole := make([]float32, rows*cols)
		if err := c.Decode(codec.Rows{X: whole, Cols: cols, Len: rows}, c.Encode(nil, all, k), false); err != nil {
			t.Fatal(err)
		}
		some := codec.Rows{X: x, Cols: cols}
		for r := rows - 1; r >= 0; r -= 3 {
			some.Index, some.IDs, some.Len = append(some.Index, uint32(r)), append(some.IDs, uint32(1000+r)), some.Len+1
		}
		parts := make([]float32, rows*cols)
		for from := 0; from < some.Len; from += 4 {
			part := some.Part(from, min(from+4, some.Len))
			dst := part
			dst.X = parts
			if err := c.Decode(dst, c.Encode(nil, part, k), false); err != nil {
				t.Fatal(err)
			}
		}
		for r := rows - 1; r >= 0; r -= 3 {
			if !slices.Equal(parts[r*cols:(r+1)*cols], whole[r*cols:(r+1)*cols]) {
				t.Errorf("%s: row %d depends on the others", name, r)
			}
		}
	}
}

// Blocks are as short as the codec's rate promises, frame and grids included.
func TestRatios(t *testing.T) {
	const rows = 2000
	for cols, ratios := range map[int]map[string]float64{
		128: {"none": 0.99, "bf16": 1.99, "int8": 3.8, "int4": 7.5, "int2": 14, "adaptive": 7.3, "adaptive:3": 9.6, "polyline": 1.5},
		16:  {"int8": 3.7, "int4": 7, "int2": 12},
		10:  {"int8": 3.6, "int4": 6.6, "int2": 9.9},
		7:   {"int8": 3.7, "int4": 6.1, "int2": 11},
	} {
		x := activations(rows, cols)
		for name, want := range ratios {
			block := codec.EncodeBlock(nil, named(t, name), codec.Rows{X: x, Cols: cols, Len: rows}, 0, codec.Key{}, nil)
			if got := float64(4*len(x)) / float64(len(block)); got < want {
				t.Errorf("%s: rows of %d are %.2f times shorter, want %.2f", name, cols, got, want)
			}
		}
	}
}

// activations returns rows after a ReLU and dropout 0.5: a quarter of the numbers is not 0.
func activations(rows, cols int) []float32 {
	x := noise(rows*cols, 9)
	for i, v := range x {
		if x[i] = max(v, 0); kernels.Philox([4]uint32{uint32(i)}, [2]uint32{8})[0]>>31 != 0 {
			x[i] = 0
		}
	}
	return x
}

// A codec does not allocate once its buffers have grown, except in zstd's own pools.
func TestNoAllocation(t *testing.T) {
	if mapped.UnderRace {
		t.Skip("the race detector makes pools forget what they hold")
	}
	const rows, cols = 50, 41
	x := activations(rows, cols)
	x[3*cols] = float32(math.NaN())
	for _, name := range names {
		if strings.Contains(name, "zstd") {
			continue
		}
		c := named(t, name)
		src, dst := codec.Rows{X: x, Cols: cols, Len: rows}, codec.Rows{X: make([]float32, len(x)), Cols: cols, Len: rows}
		lost := make(codec.Feedback, len(x))
		block := make([]byte, 0, 8*len(x))
		n := testing.AllocsPerRun(20, func() {
			block = codec.EncodeBlock(block[:0], c, src, 0, codec.Key{}, lost)
			b, err := codec.Open(block, c)
			if err == nil {
				err = b.Decode(c, dst, false)
			}
			if err != nil {
				t.Error(err)
			}
		})
		if n != 0 {
			t.Errorf("%s allocates %v times a block", name, n)
		}
	}
}

func BenchmarkCodecs(b *testing.B) {
	const rows, cols = 2048, 128
	x := activations(rows, cols)
	for _, name := range []string{
		"none", "s2", "zstd", "zeros", "bf16", "bf16+s2", "bf16+zstd", "int8", "int8+s2", "int8+zstd", "int4", "int4+s2", "int4+zstd",
		"int2", "adaptive", "adaptive:3", "polyline", "polyline:2", "polyline:2+zstd",
	} {
		c, src := named(b, name), codec.Rows{X: x, Cols: cols, Len: rows}
		lost := make(codec.Feedback, len(x))
		block := codec.EncodeBlock(nil, c, src, 0, codec.Key{}, nil)
		encode := func(lost codec.Feedback) func(*testing.B) {
			return func(b *testing.B) {
				b.SetBytes(4 * rows * cols)
				for b.Loop() {
					block = codec.EncodeBlock(block[:0], c, src, 0, codec.Key{}, lost)
				}
				b.ReportMetric(float64(4*len(x))/float64(len(block)), "ratio")
			}
		}
		decode := func(add bool) func(*testing.B) {
			return func(b *testing.B) {
				dst := codec.Rows{X: make([]float32, len(x)), Cols: cols, Len: rows}
				b.SetBytes(4 * rows * cols)
				for b.Loop() {
					opened, err := codec.Open(block, c)
					if err == nil {
						err = opened.Decode(c, dst, add)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		b.Run(name+"/encode", encode(nil))
		b.Run(name+"/decode", decode(false))
		b.Run(name+"/add", decode(true))
		if !c.Lossless() {
			b.Run(name+"/feedback", encode(lost))
		}
	}
}
