package kernels_test

import (
	"math"
	"testing"

	"siafu/internal/testkit/kerneltest"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

// The known answers of Random123 (kat_vectors, philox4x32 with 10 rounds).
func TestPhiloxKnownAnswers(t *testing.T) {
	const ones = 0xffffffff
	for _, c := range []struct {
		ctr  [4]uint32
		key  [2]uint32
		want [4]uint32
	}{
		{want: [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{ones, ones, ones, ones}, [2]uint32{ones, ones},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := kernels.Philox(c.ctr, c.key); got != c.want {
			t.Errorf("Philox(%x, %x) = %x, want %x", c.ctr, c.key, got, c.want)
		}
	}
}

// mask returns the elements of a matrix [rows x cols] that d keeps.
func mask(rows, cols int, d *kernels.Dropout) []float32 {
	team := kernels.NewTeam(1)
	defer team.Close()
	v := make([]float32, rows*cols)
	for i := range v {
		v[i] = 1
	}
	flat.DropoutRows(team, v, rows, cols, v, d)
	return v
}

// The fraction of kept elements is within five standard deviations of 1-P, in total and in
// each column, and the mean stays 1.
func TestDropoutRate(t *testing.T) {
	const rows, cols = 4000, 10
	for _, p := range []float64{0.1, 0.5, 0.9} {
		kept := make([]float64, cols)
		for i, v := range mask(rows, cols, &kernels.Dropout{Seed: 3, P: p}) {
			switch v {
			case float32(1 / (1 - p)):
				kept[i%cols]++
			case 0:
			default:
				t.Fatalf("element %d scaled by %v at P=%v", i, v, p)
			}
		}
		var all float64
		for c, n := range kept {
			all += n
			if d := math.Abs(n - rows*(1-p)); d > 5*math.Sqrt(rows*p*(1-p)) {
				t.Errorf("column %d keeps %v of %d at P=%v", c, n, rows, p)
			}
		}
		if d := math.Abs(all - rows*cols*(1-p)); d > 5*math.Sqrt(rows*cols*p*(1-p)) {
			t.Errorf("%v of %d kept at P=%v", all, rows*cols, p)
		}
	}
}

// Masks of different seeds, epochs and layers agree as often as independent ones.
func TestDropoutMasksAreIndependent(t *testing.T) {
	const rows, cols = 2000, 8
	base := mask(rows, cols, &kernels.Dropout{Seed: 1, Epoch: 1, Layer: 1, P: 0.5})
	for name, d := range map[string]kernels.Dropout{
		"seed":  {Seed: 2, Epoch: 1, Layer: 1},
		"high":  {Seed: 1 + 1<<32, Epoch: 1, Layer: 1},
		"epoch": {Seed: 1, Epoch: 2, Layer: 1},
		"layer": {Seed: 1, Epoch: 1, Layer: 2},
	} {
		d.P = 0.5
		var equal float64
		for i, v := range mask(rows, cols, &d) {
			if v == base[i] {
				equal++
			}
		}
		if math.Abs(equal-rows*cols/2) > 5*math.Sqrt(rows*cols/4) {
			t.Errorf("another %s: %v of %d elements agree", name, equal, rows*cols)
		}
	}
}

// A vertex has the same mask for any partition.
func TestDropoutFollowsTheVertex(t *testing.T) {
	const rows, cols = 100, 13
	whole := mask(rows, cols, &kernels.Dropout{Seed: 5, Epoch: 2, P: 0.4})
	for _, first := range []int{0, 1} {
		var ids []uint32
		for v := first; v < rows; v += 2 {
			ids = append(ids, uint32(v))
		}
		part := mask(len(ids), cols, &kernels.Dropout{Seed: 5, Epoch: 2, P: 0.4, IDs: kernels.HostVector(ids)})
		for i, v := range part {
			if v != whole[int(ids[i/cols])*cols+i%cols] {
				t.Fatalf("vertex %d, column %d differs", ids[i/cols], i%cols)
			}
		}
	}
}

func TestInitialWeights(t *testing.T) {
	const rows, cols = 120, 50
	for name, c := range map[string]struct {
		fill func(dst []float32, rows, cols int, seed uint64, layer int)
		a    float64
	}{
		"xavier": {kernels.Xavier, math.Sqrt(6.0 / (rows + cols))},
		"he":     {kernels.He, math.Sqrt(6.0 / rows)},
		"torch": {func(dst []float32, rows, cols int, seed uint64, layer int) {
			kernels.Torch(dst, rows, cols, 30, seed, layer)
		}, math.Sqrt(1.0 / 30)},
	} {
		t.Run(name, func(t *testing.T) {
			w := make([]float32, rows*cols)
			c.fill(w, rows, cols, 9, 0)
			var mean, square float64
			for _, v := range w {
				if math.Abs(float64(v)) > c.a {
					t.Fatalf("%v outside ±%v", v, c.a)
				}
				mean += float64(v) / c.a / rows / cols
				square += float64(v) * float64(v) / c.a / c.a / rows / cols
			}
			// Mean 0 and variance 1/3, each within five standard errors.
			if math.Abs(mean) > 5*math.Sqrt(1.0/3/rows/cols) || math.Abs(square-1.0/3) > 5*math.Sqrt(4.0/45/rows/cols) {
				t.Errorf("mean %v, variance %v of uniform weights", mean, square)
			}
			for other, seedLayer := range map[string][2]uint64{"seed": {8, 0}, "layer": {9, 1}} {
				o := make([]float32, rows*cols)
				c.fill(o, rows, cols, seedLayer[0], int(seedLayer[1]))
				if o[0] == w[0] || o[rows*cols-1] == w[rows*cols-1] {
					t.Errorf("another %s gives the same weights", other)
				}
			}
		})
	}
}

// The gradient of Σ c·h through the epilogue, against central differences. The step is a power
// of two, and inputs are far from the kink of ReLU.
func TestEpilogueGradientByDifferences(t *testing.T) {
	const rows, cols, step = 9, 7, 1.0 / 1024
	team := kernels.NewTeam(1)
	defer team.Close()
	for _, relu := range []bool{false, true} {
		d := &kernels.Dropout{Seed: 4, P: 0.3}
		z, c := kerneltest.Values(rows*cols, 1), kerneltest.Values(rows*cols, 2)
		h, grad := make([]float32, rows*cols), make([]float32, rows*cols)
		objective := func() (s float64) {
			flat.BiasReLUDropout(team, h, rows, cols, z, nil, relu, d)
			for i := range h {
				s += float64(c[i]) * float64(h[i])
			}
			return s
		}
		objective()
		flat.BiasReLUDropoutGrad(team, grad, nil, rows, cols, c, h, relu, d)
		for i := range z {
			z[i] += step
			up := objective()
			z[i] -= 2 * step
			slope := (up - objective()) / (2 * step)
			z[i] += step
			if math.Abs(slope-float64(grad[i])) > 1e-3 {
				t.Fatalf("relu=%v: element %d has gradient %v, slope %v", relu, i, grad[i], slope)
			}
		}
	}
}
