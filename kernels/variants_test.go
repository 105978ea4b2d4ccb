package kernels_test

import (
	"slices"
	"testing"

	"siafu/internal/mapped"
	"siafu/internal/testkit/kerneltest"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

// use selects a team's instructions, or skips the test if the machine lacks them.
func use(t *testing.T, team *kernels.Team, instructions string) {
	t.Helper()
	if err := team.Use(instructions); err != nil {
		t.Skip(err)
	}
}

// A build has plain Go and every variant that its processor runs.
func TestCompiled(t *testing.T) {
	names := kernels.Compiled()
	for _, v := range kernels.Variants() {
		if !slices.Contains(names, v) {
			t.Errorf("variant %s runs but is not in %v", v, names)
		}
	}
	if len(names) == 0 || names[len(names)-1] != "go" {
		t.Errorf("no plain Go in %v", names)
	}
}

// Products and epilogues pass the conformance suite with OpenBLAS, whose bits differ. The suite
// compares all other variants in each case.
func TestOpenBLAS(t *testing.T) {
	prepare := func(team *kernels.Team) { use(t, team, "openblas") }
	team := kernels.NewTeam(1)
	defer team.Close()
	prepare(team)
	kerneltest.HalfProducts(t, prepare)
	kerneltest.Teams(prepare).Products(t)
}

// Rows are rounded to bfloat16 by every instruction set, and products of such rows equal products of
// widened rows.
func TestHalvesOfEveryInstructionSet(t *testing.T) {
	eachSet(t, func(t *testing.T, set string) {
		kerneltest.NarrowRows(t, func(team *kernels.Team, dst []kernels.BF16, stride, rows, cols int, x, scale []float32) {
			use(t, team, set)
			flat.NarrowRows(team, dst, stride, rows, cols, x, scale)
		})
	})
	kerneltest.HalfProducts(t, func(*kernels.Team) {})
	for _, weighted := range []bool{false, true} {
		best.SpMM(t, weighted)
		best.SpMMHalf(t, weighted)
	}
}

// Every instruction set does the same operations in the same order: the same bits. The shapes have
// several blocks of k, and several tiles and a rest in each dimension.
func TestInstructionSetsAgree(t *testing.T) {
	team := kernels.NewTeam(2)
	defer team.Close()
	for _, s := range [][3]int{{1, 1, 1}, {13, 7, 5}, {29, 41, 33}, {700, 130, 70}, {5, 16, 300}, {30, 300, 900}, {1600, 3, 2}} {
		m, n, k := s[0], s[1], s[2]
		a, b, c := kerneltest.Values(m*k, 1), kerneltest.Values(k*n, 2), kerneltest.Values(m*n, 3)
		var first [][]float32
		eachSet(t, func(t *testing.T, set string) {
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
			results := [][]float32{hw, gw, hg, gathered}
			if first == nil {
				first = results
			}
			for i, name := range []string{"MatMul", "MatMulTransB", "MatMulTransA", "SpMM"} {
				if !slices.Equal(mapped.Bytes(results[i]), mapped.Bytes(first[i])) {
					t.Errorf("%s of %v has other bits than with another instruction set", name, s)
				}
			}
		})
	}
	if err := team.Use("sse"); err == nil {
		t.Error("unknown instructions are accepted")
	}
}
