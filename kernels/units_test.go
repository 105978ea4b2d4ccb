package kernels_test

import (
	"math"
	"slices"
	"testing"

	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
)

// Rows of each width are divided by their norms, and a row of zeros stays zero. Separate
// operands, in-place operation and any number of workers give the same bits. A float64 result
// rounded to float32 has a relative error of 2^-24.
func TestUnitRows(t *testing.T) {
	for _, shape := range [][2]int{{0, 3}, {1, 1}, {7, 5}, {3001, 33}, {700, 64}} {
		rows, cols := shape[0], shape[1]
		z, g := kerneltest.Values(rows*cols, 1), kerneltest.Values(rows*cols, 2)
		if rows > 1 {
			clear(z[cols : 2*cols])
		}
		one, grad := unitRows(t, 1, rows, cols, z, g, false)
		if three, back := unitRows(t, 3, rows, cols, z, g, false); !slices.Equal(three, one) || !slices.Equal(back, grad) {
			t.Errorf("%d x %d: three workers make other bits than one", rows, cols)
		}
		for r := range rows {
			square, along := 0.0, 0.0
			for j, v := range z[r*cols : (r+1)*cols] {
				square, along = square+float64(v)*float64(v), along+float64(v)*float64(g[r*cols+j])
			}
			for j := range cols {
				at, want, slope := r*cols+j, 0.0, 0.0
				if square > 0 {
					norm := math.Sqrt(square)
					y := float64(z[at]) / norm
					want, slope = y, (float64(g[at])-y*along/norm)/norm
				}
				if off := math.Abs(float64(one[at]) - want); off > math.Abs(want)/(1<<23) {
					t.Fatalf("%d x %d, row %d column %d: %v, want %v", rows, cols, r, j, one[at], want)
				}
				// The quotient's slope is a difference of two terms, each with an error of
				// units of float64.
				if off := math.Abs(float64(grad[at]) - slope); off > math.Abs(slope)/(1<<23)+1e-12*math.Abs(float64(g[at])) {
					t.Fatalf("%d x %d, row %d column %d: gradient %v, want %v", rows, cols, r, j, grad[at], slope)
				}
			}
		}
	}
}

// unitRows returns z's normalized rows and the gradient of g, computed in place after a run
// into other matrices with the same result.
func unitRows(t *testing.T, workers, rows, cols int, z, g []float32, ball bool) (out, grad []float32) {
	team := kernels.NewTeam(workers)
	defer team.Close()
	mat := func(x []float32) kernels.Mat { return kernels.HostMat(rows, cols, x) }
	apart, slope := make([]float32, rows*cols), make([]float32, rows*cols)
	team.UnitRows(mat(apart), mat(z), ball)
	team.UnitRowsGrad(mat(slope), mat(g), mat(z), ball)
	out, grad = slices.Clone(z), slices.Clone(g)
	team.UnitRowsGrad(mat(grad), mat(grad), mat(z), ball)
	team.UnitRows(mat(out), mat(out), ball)
	if !slices.Equal(out, apart) || !slices.Equal(grad, slope) {
		t.Errorf("%d x %d: in place it is something else", rows, cols)
	}
	return out, grad
}

// In the unit ball rows up to a norm of 1 stay as they are, with their gradients, and longer
// ones equal UnitRows without ball.
func TestUnitBall(t *testing.T) {
	const rows, cols = 700, 5
	z, g := kerneltest.Values(rows*cols, 1), kerneltest.Values(rows*cols, 2)
	inside := 0
	for r := range rows {
		for j := range cols {
			z[r*cols+j] *= float32(r) / rows
		}
	}
	divided, slope := unitRows(t, 1, rows, cols, z, g, false)
	for _, workers := range []int{1, 3} {
		out, grad := unitRows(t, workers, rows, cols, z, g, true)
		for r := range rows {
			at, end, square := r*cols, (r+1)*cols, 0.0
			for _, v := range z[at:end] {
				square += float64(v) * float64(v)
			}
			want, wantGrad := divided[at:end], slope[at:end]
			if square <= 1 {
				want, wantGrad = z[at:end], g[at:end]
				inside++
			}
			if !slices.Equal(out[at:end], want) || !slices.Equal(grad[at:end], wantGrad) {
				t.Fatalf("row %d of norm² %v: %v, %v, want %v, %v", r, square, out[at:end], grad[at:end], want, wantGrad)
			}
		}
	}
	if inside < rows/4 || inside > 2*rows-rows/4 {
		t.Errorf("%d of %d rows are in the ball", inside, 2*rows)
	}
}
