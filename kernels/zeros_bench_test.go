package kernels_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"siafu/kernels"
)

func TestZerosSpeed(t *testing.T) {
	team := kernels.NewTeam(2)
	defer team.Close()
	const rows = 50000
	fill := func(r, c int, d float64) kernels.Mat {
		x := make([]float32, r*c)
		g := rand.New(rand.NewPCG(1, uint64(r+c)))
		for i := range x {
			if g.Float64() < d {
				x[i] = g.Float32() - 0.3
			}
		}
		return kernels.HostMat(r, c, x)
	}
	best := func(f func()) float64 {
		b := time.Hour
		for range 8 {
			s := time.Now()
			f()
			b = min(b, time.Since(s))
		}
		return b.Seconds() * 1e3
	}
	for _, k := range []int{64, 128, 602} {
		for _, n := range []int{7, 16, 41, 64, 128} {
			w := fill(k, n, 1)
			g := fill(rows, n, 1)
			dw := fill(k, n, 1)
			dst := fill(rows, n, 1)
			line := fmt.Sprintf("%4d x %3d:", k, n)
			for _, d := range []float64{1, 0.25, 0.5, 0.75} {
				a := fill(rows, k, d)
				line += fmt.Sprintf("  %.2f: HW %6.2f", d, best(func() { team.MatMul(dst, a, w, false) }))
				line += fmt.Sprintf(" HtG %6.2f", best(func() { team.MatMulTransA(dw, a, g, false) }))
				if n >= 16 {
					gs := fill(rows, n, d)
					x := fill(rows, k, 1)
					line += fmt.Sprintf(" XtG %6.2f", best(func() { team.MatMulTransA(dw, x, gs, false) }))
				}
			}
			fmt.Println(line)
		}
	}
}
