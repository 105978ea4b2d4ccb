package kernels_test

import (
	"slices"
	"testing"

	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/kerneltest"
	"siafu/kernels/kerneltest/flat"
)

// use selects a team's instructions, or skips the test if the machine lacks them.
func use(t *testing.T, team *kernels.Team, instructions string) {
	t.Helper()
	if err := team.Use(instructions); err != nil {
		t.Skip(err)
	}
}

// Products and epilogues pass the conformance suite with every instruction set that this
// machine has, and in plain Go; kernels_test.go runs the best of them.
func TestEveryInstructionSet(t *testing.T) {
	for _, set := range []string{"go", "avx2", "avx512", "openblas"} {
		t.Run(set, func(t *testing.T) {
			team := kernels.NewTeam(1)
			defer team.Close()
			use(t, team, set)
			s := kerneltest.Teams(func(team *kernels.Team) { use(t, team, set) })
			for _, weighted := range []bool{false, true} {
				s.SpMM(t, weighted)
				s.SpMMHalf(t, weighted)
			}
			kerneltest.NarrowRows(t, func(team *kernels.Team, dst []kernels.BF16, stride, rows, cols int, x, scale []float32) {
				use(t, team, set)
				flat.NarrowRows(team, dst, stride, rows, cols, x, scale)
			})
			kerneltest.HalfProducts(t, func(team *kernels.Team) { use(t, team, set) })
			for _, test := range []func(*testing.T){
				s.MatMul, s.MatMulTransB, s.MatMulTransA, s.BiasReLUDropout, s.Add, s.MatMulBiasReLUDropout,
				s.BiasReLUDropoutGrad, s.SoftmaxCrossEntropy, s.Softmax, s.ColumnSums,
			} {
				test(t)
			}
		})
	}
}

// AVX-512 and AVX2 do the same operations in the same order: the same bits.
func TestInstructionSetsAgree(t *testing.T) {
	team := kernels.NewTeam(2)
	defer team.Close()
	use(t, team, "avx512")
	for _, s := range [][3]int{{1, 1, 1}, {13, 7, 5}, {29, 41, 33}, {700, 130, 70}, {5, 16, 300}} {
		m, n, k := s[0], s[1], s[2]
		a, b, c := kerneltest.Values(m*k, 1), kerneltest.Values(k*n, 2), kerneltest.Values(m*n, 3)
		var results [2][][]float32
		for i, set := range []string{"avx512", "avx2"} {
			use(t, team, set)
			hw, gw, hg, gathered := slices.Clone(c), slices.Clone(c), make([]float32, k*n), slices.Clone(c)
			flat.MatMul(team, hw, m, n, k, a, b, true)
			flat.MatMulTransB(team, gw, m, n, k, a, b, false)
			flat.MatMulTransA(team, hg, k, n, m, a, c, false)
			begin, end, cols := make([]int64, m), make([]int64, m), make([]uint32, 0, 3*m)
			for r := range m {
				begin[r] = int64(len(cols))
				for j := range r % 40 {
					cols = append(cols, uint32((r*7+j*3)%k))
				}
				end[r] = int64(len(cols))
			}
			g := kernels.Gather{Begin: begin, End: end, Cols: cols, RowScale: a[:m], ColScale: b[:k]}
			flat.SpMM(team, gathered, n, g, b, true)
			results[i] = [][]float32{hw, gw, hg, gathered}
		}
		for i, name := range []string{"MatMul", "MatMulTransB", "MatMulTransA", "SpMM"} {
			if !slices.Equal(mapped.Bytes(results[0][i]), mapped.Bytes(results[1][i])) {
				t.Errorf("%s of %v differs between avx512 and avx2", name, s)
			}
		}
	}
	if err := team.Use("sse"); err == nil {
		t.Error("unknown instructions are accepted")
	}
}
