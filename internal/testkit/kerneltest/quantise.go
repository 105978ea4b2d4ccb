package kerneltest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"siafu/kernels"
)

// rowWidths contains widths around every multiple of a vector and of a group of columns.
var rowWidths = []int{1, 2, 3, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 41, 47, 48, 49, 63, 64, 65, 95, 96, 97, 127, 128, 130, 602}

// Extent runs an implementation of kernels.Extent.
func Extent(t *testing.T, extent func(x []float32) (lo, hi float32, finite bool)) {
	for _, n := range rowWidths {
		x := Values(n, uint64(n))
		lo, hi, finite := extent(x)
		if lo != slices.Min(x) || hi != slices.Max(x) || !finite {
			t.Fatalf("%d elements in [%v, %v], finite %v, want [%v, %v]", n, lo, hi, finite, slices.Min(x), slices.Max(x))
		}
		for i := range x {
			for _, odd := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				v := x[i]
				x[i] = float32(odd)
				if _, _, finite := extent(x); finite {
					t.Fatalf("%v in place %d of %d is not noticed", odd, i, n)
				}
				x[i] = v
			}
		}
	}
}

// Draws contains the arguments of kernels.NewRounding.
type Draws struct {
	Seed         uint64
	Epoch, Layer int
	Backward     bool
}

// chance returns the random number of a column: 16 bits of a word of Philox.
func (d Draws) chance(id uint32, col int) float64 {
	last := uint32(3<<24 | d.Layer)
	if d.Backward {
		last |= 1 << 23
	}
	block := col/32*4 + col%8/2
	words := kernels.Philox([4]uint32{id, uint32(block), uint32(d.Epoch), last}, [2]uint32{uint32(d.Seed), uint32(d.Seed >> 32)})
	word := words[col%16/8*2+col%2]
	return float64(word>>(col%32/16*16)&0xffff) / (1 << 16)
}

// code returns the code of v by definition. Its position on the grid is rounded to 16 fractional
// bits.
func code(v float32, g kernels.Grid, bits int, u float64) byte {
	place := 0.0
	if g.Step != 0 {
		place = math.RoundToEven(float64((v-g.Offset.Float32())*(65536/g.Step.Float32()))) / 65536
	}
	return byte(min(math.Floor(place+u), math.Exp2(float64(bits))-1))
}

// rowsToRound returns rows of a width: both signs, few values, one value, tiny, far from zero.
func rowsToRound(n int) map[string][]float32 {
	rows := map[string][]float32{"both signs": Values(n, 3)}
	for name, f := range map[string]func(v float32) float32{
		"behind a ReLU": func(v float32) float32 { return max(v, 0) },
		"zero":          func(float32) float32 { return 0 },
		"one value":     func(float32) float32 { return -1003.9 },
		"subnormal":     func(v float32) float32 { return v * 1e-40 },
		"far from zero": func(v float32) float32 { return 1e6 + v },
		"large":         func(v float32) float32 { return v * 1e37 },
	} {
		row := guarded(rows["both signs"])
		for i, v := range row {
			row[i] = f(v)
		}
		rows[name] = row
	}
	return rows
}

// Codes runs an implementation of kernels.Rounding.Codes.
func Codes(t *testing.T, codes func(r kernels.Rounding, dst []byte, x []float32, g kernels.Grid, bits int, id uint32)) {
	for i, n := range rowWidths {
		for name, x := range rowsToRound(n) {
			for _, bits := range []int{2, 4, 8} {
				d := Draws{Seed: 1<<40 + uint64(i), Epoch: i, Layer: i % 3, Backward: i%2 == 1}
				id := uint32(i) * 2654435761
				g, ok := kernels.NewGrid(slices.Min(x), slices.Max(x), bits)
				if !ok {
					t.Fatalf("%s: no grid for %v", name, x)
				}
				const guard = 0xa5
				dst := slices.Repeat([]byte{guard}, kernels.CodeBytes(n, bits)+kernels.CodeSlack+1)
				codes(kernels.NewRounding(d.Seed, d.Epoch, d.Layer, d.Backward), dst[:len(dst)-1], x, g, bits, id)
				if dst[len(dst)-1] != guard {
					t.Fatalf("%s: %d codes of %d bits: written behind the slack", name, n, bits)
				}
				want := make([]byte, kernels.CodeBytes(n, bits))
				for c, v := range x {
					want[c*bits/8] |= code(v, g, bits, d.chance(id, c)) << (c * bits % 8)
				}
				if got := dst[:len(want)]; !slices.Equal(got, want) {
					t.Fatalf("%s: %d codes of %d bits are %x, want %x", name, n, bits, got, want)
				}
			}
		}
	}
}

// CodeValues runs an implementation of kernels.Grid.Values.
func CodeValues(t *testing.T, values func(g kernels.Grid, dst []float32, codes []byte, bits int, add bool)) {
	g := kernels.Grid{Offset: kernels.Narrow(-3.7), Step: kernels.Narrow(0.0123)}
	for _, n := range rowWidths {
		for _, bits := range []int{2, 4, 8} {
			codes := make([]byte, kernels.CodeBytes(n, bits)+kernels.CodeSlack)
			for i := range codes {
				codes[i] = byte(i*59 + 7)
			}
			for _, add := range []bool{false, true} {
				start := poison(n)
				if add {
					start = Values(n, 4)
				}
				want := make([]float32, n)
				for c := range want {
					k := codes[c*bits/8] >> (c * bits % 8) & byte(1<<bits-1)
					want[c] = float32(float64(g.Offset.Float32()) + float64(k)*float64(g.Step.Float32()))
					if add {
						want[c] += start[c]
					}
				}
				got := guarded(start)
				values(g, got, codes, bits, add)
				checkGuards(t, got)
				t.Run(fmt.Sprintf("cols=%d/bits=%d/add=%v", n, bits, add), func(t *testing.T) { same(t, got, want) })
			}
		}
	}
}

// HalfRows runs implementations of kernels.NarrowRow and kernels.WidenRow.
func HalfRows(t *testing.T, narrow func(dst []kernels.BF16, x []float32), widen func(dst []float32, x []kernels.BF16, add bool)) {
	for _, n := range rowWidths {
		x, half := Values(n, 1), make([]kernels.BF16, n+1)
		insertNonFinite(x)
		half[n] = 0x1234
		narrow(half[:n], x)
		for i, h := range half[:n] {
			if h != kernels.Narrow(x[i]) {
				t.Fatalf("element %d of %d is %x, want %x", i, n, h, kernels.Narrow(x[i]))
			}
		}
		if half[n] != 0x1234 {
			t.Fatalf("written behind %d elements", n)
		}
		for _, add := range []bool{false, true} {
			got, want := guarded(Values(n, 2)), make([]float32, n)
			for i, h := range half[:n] {
				want[i] = h.Float32()
				if add {
					want[i] += got[i]
				}
			}
			widen(got, half[:n], add)
			checkGuards(t, got)
			same(t, got, want)
		}
	}
}
