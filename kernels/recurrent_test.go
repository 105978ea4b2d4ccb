package kernels_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/internal/mapped"
	"siafu/kernels"
)

var cells = map[string]kernels.Cell{"lstm": kernels.LSTM, "gru": kernels.GRU}

// The gradients of a cell are those of central differences. With steps of 1e-2 in float32 these are
// wrong by about 1e-4 of the third derivatives (the truncation) and 1e-5 (the rounding).
func TestCellGradients(t *testing.T) {
	const rows, k, step, tolerance = 7, 5, 1e-2, 5e-4
	for name, cell := range cells {
		for _, threads := range []int{1, 3} {
			team, rng := kernels.NewTeam(threads), rand.New(rand.NewPCG(1, 2))
			defer team.Close()
			random := func(cols int) kernels.Mat {
				x := make([]float32, rows*cols)
				for i := range x {
					x[i] = float32(rng.NormFloat64())
				}
				return kernels.HostMat(rows, cols, x)
			}
			empty := func(cols int) kernels.Mat { return kernels.HostMat(rows, cols, make([]float32, rows*cols)) }
			s := cell.States() * k
			z, state, weight := random(kernels.Gates*k), random(s), random(s)
			next, gates := empty(s), empty(kernels.Gates*k)
			loss := func() (sum float64) {
				copy(gates.Host(), z.Host())
				cell.Step(team, next, gates, state)
				for i, w := range weight.Host() {
					sum += float64(w) * float64(next.Host()[i])
				}
				return sum
			}
			dz, dstate := empty(kernels.Gates*k), empty(s)
			loss()
			cell.StepGrad(team, dz, dstate, weight, gates, state)
			for what, of := range map[string][2][]float32{"z": {z.Host(), dz.Host()}, "state": {state.Host(), dstate.Host()}} {
				for i := range of[0] {
					x := of[0][i]
					of[0][i] = x + step
					up := loss()
					of[0][i] = x - step
					want := (up - loss()) / (2 * step)
					of[0][i] = x
					if got := float64(of[1][i]); !(math.Abs(got-want) <= tolerance) {
						t.Errorf("%s: gradient of %s[%d] is %v, by differences %v", name, what, i, got, want)
					}
				}
			}
			loss()
			cell.StepGrad(team, gates, weight, weight, gates, state)
			if !slices.Equal(gates.Host(), dz.Host()) || !slices.Equal(weight.Host(), dstate.Host()) {
				t.Errorf("%s: other gradients in place", name)
			}
		}
	}
}

// A gate that is closed keeps the state, and one that is open replaces it. Bits do not depend on threads.
func TestCells(t *testing.T) {
	for name, cell := range cells {
		t.Run(name, func(t *testing.T) {
			s := cell.States()
			for _, rows := range []int{0, 1, 1000} {
				var want []float32
				for _, threads := range []int{1, 3} {
					team := kernels.NewTeam(threads)
					defer team.Close()
					z, state, next := make([]float32, rows*4), make([]float32, rows*s), make([]float32, rows*s)
					for r := range rows {
						copy(z[r*4:], map[string][]float32{"lstm": {-200, 200, 5, 200}, "gru": {200, 0, 5, 5}}[name])
						for j := range s {
							state[r*s+j] = float32(r) / 1000
						}
					}
					cell.Step(team, kernels.HostMat(rows, s, next), kernels.HostMat(rows, 4, z), kernels.HostMat(rows, s, state))
					for r := range rows {
						kept, h := next[r*s+s-1], float64(r)/1000
						if s == 2 {
							h = math.Tanh(h)
						}
						if kept != state[r*s+s-1] || math.Abs(float64(next[r*s])-h) > 1e-6 {
							t.Fatalf("row %d: %v after %v", r, next[r*s:(r+1)*s], state[r*s:(r+1)*s])
						}
					}
					if want == nil {
						want = next
					}
					if !slices.Equal(next, want) {
						t.Error("other bits with 3 threads")
					}
				}
			}
		})
	}
}

// Every instruction set gives the same bits for a cell and its gradient. The
// widths are less than a vector, no multiple of one, and more than the block of a gradient.
func TestCellsOfEveryInstructionSet(t *testing.T) {
	for name, cell := range cells {
		for _, k := range []int{1, 5, 16, 130} {
			const rows = 37
			rng, s := rand.New(rand.NewPCG(3, 4)), cell.States()*k
			random := func(cols int, scale float64) []float32 {
				x := make([]float32, rows*cols)
				for i := range x {
					x[i] = float32(scale * rng.NormFloat64())
				}
				return x
			}
			z, state, grad := random(kernels.Gates*k, 5), random(s, 1), random(s, 1)
			z[0], z[len(z)-1] = 100, -100
			run := func(set string) (results [4][]float32) {
				team := kernels.NewTeam(2)
				defer team.Close()
				use(t, team, set)
				mat := func(cols int, x []float32) kernels.Mat { return kernels.HostMat(rows, cols, x) }
				results = [4][]float32{make([]float32, rows*s), slices.Clone(z), make([]float32, len(z)), make([]float32, rows*s)}
				cell.Step(team, mat(s, results[0]), mat(kernels.Gates*k, results[1]), mat(s, state))
				cell.StepGrad(team, mat(kernels.Gates*k, results[2]), mat(s, results[3]), mat(s, grad),
					mat(kernels.Gates*k, results[1]), mat(s, state))
				return results
			}
			first := run("go")
			eachSet(t, func(t *testing.T, set string) {
				for i, got := range run(set) {
					if !slices.Equal(mapped.Bytes(got), mapped.Bytes(first[i])) {
						t.Errorf("%s, width %d: array %d has other bits than in plain Go", name, k, i)
					}
				}
			})
		}
	}
}
