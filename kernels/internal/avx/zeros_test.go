//go:build amd64 && !race

package avx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// A product that skips the zeros of A has the same bits, with partial blocks of K, panels of N
// and squares of bits.
func TestMultiplySparse(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	values := func(n int, full float64) []float32 {
		x := make([]float32, n)
		for i := range x {
			if rng.Float64() < full {
				x[i] = rng.Float32() - 0.5
			} else if i%3 == 0 {
				x[i] = float32(math.Copysign(0, -1))
			}
		}
		return x
	}
	for set := AVX2; set <= Best(); set++ {
		for _, m := range []int{1, 33, 64, 97, 130, 192} {
			for _, k := range []int{17, 64, 100, 300, 800} {
				for _, n := range []int{1, 16, 41, 72, 128, 129, 150} {
					a, b := values(m*k, 0.3), values(k*n, 1)
					rows := Product{A: a, RowStride: k, ColStride: 1, B: b, LDB: n, M: m, N: n, K: k, LDC: n}
					columns := rows
					columns.RowStride, columns.ColStride = 1, m
					for _, p := range []Product{rows, columns} {
						p.Add = rng.IntN(2) > 0
						same(t, set, p, values(m*n, 1))
					}
				}
			}
		}
	}
}

func same(t *testing.T, set Set, p Product, c []float32) {
	t.Helper()
	if p.ColStride == 1 && p.M == 1 { // one column is its own transpose
		return
	}
	want, got := append([]float32(nil), c...), append([]float32(nil), c...)
	tiles := p
	tiles.C, tiles.Pack = want, make([]float32, PackSize)
	set.Multiply(tiles)
	p.C = got
	set.MultiplySparse(p, new(Scratch))
	for i := range want {
		if want[i] != got[i] {
			t.Fatalf("%s: element %d is %v, and %v with the zeros", fmt.Sprintf("%v %d x %d x %d, strides %d and %d, add %v", set, p.M, p.K,
				p.N, p.RowStride, p.ColStride, p.Add), i, got[i], want[i])
		}
	}
}

// Each set bit is at the transposed position.
func TestTransposeBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var a, b [wordBits]uint64
	for i := range a {
		a[i] = rng.Uint64()
	}
	b = a
	transposeBits(&b)
	for r := range a {
		for c := range b {
			if a[r]>>c&1 != b[c]>>r&1 {
				t.Fatalf("row %d, column %d", r, c)
			}
		}
	}
}
