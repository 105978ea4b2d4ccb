package yardstick

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/internal/testkit/kerneltest"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

// newRunner returns a runner that is closed at the test's end.
func newRunner(t *testing.T) *Runner {
	t.Helper()
	l, err := NewRunner()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// skipMissing skips the test if this machine lacks a yardstick, and fails on other errors.
func skipMissing(t *testing.T, err error) {
	t.Helper()
	if fault.KindOf(err) == fault.Missing {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// same compares a reference's result with ours.
func same(t *testing.T, r *Reference, ours []float32) {
	t.Helper()
	if err := r.Run(time.Microsecond); err != nil || r.Seconds > 60 {
		t.Fatalf("%s took %v seconds: %v", r.Name, r.Seconds, err)
	}
	theirs, err := r.Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(theirs) != len(ours) {
		t.Fatalf("%s: %d elements, want %d", r.Name, len(theirs), len(ours))
	}
	for i := range ours {
		if d := math.Abs(float64(theirs[i] - ours[i])); !(d <= 1e-4) {
			t.Fatalf("%s: element %d is %v, siafu's is %v", r.Name, i, theirs[i], ours[i])
		}
	}
}

// The C loop computes what SpMM computes, at widths around those of a vector
// and of its blocks, with rows of 0 to 40 edges.
func TestSpMMAgrees(t *testing.T) {
	const rows = 150
	team := kernels.NewTeam(2)
	defer team.Close()
	runner := newRunner(t)
	g := kernels.Gather{RowScale: kerneltest.Values(rows, 1), ColScale: kerneltest.Values(rows, 2)}
	for r := range rows {
		g.Begin = append(g.Begin, int64(len(g.Cols)))
		for e := range r * 7 % 41 {
			g.Cols = append(g.Cols, uint32((r*31+e*e)%rows))
		}
		g.End = append(g.End, int64(len(g.Cols)))
	}
	for _, width := range []int{1, 16, 31, 41, 127, 128, 129, 300} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			x, ours := kerneltest.Values(rows*width, 3), make([]float32, rows*width)
			flat.SpMM(team, ours, width, g, x, false)
			references, err := runner.SpMM(context.Background(), g, x, width, 2)
			skipMissing(t, err)
			defer CloseAll(references)
			same(t, references[0], ours)
		})
	}
}

// OpenBLAS computes the same products as the package's kernels.
func TestSGEMMAgrees(t *testing.T) {
	const m, n, k = 37, 21, 50
	team := kernels.NewTeam(2)
	defer team.Close()
	runner := newRunner(t)
	a, b := kerneltest.Values(m*k, 1), kerneltest.Values(k*n, 2)
	for form, multiply := range map[Form]func(dst []float32){
		Plain:  func(dst []float32) { flat.MatMul(team, dst, m, n, k, a, b, false) },
		TransB: func(dst []float32) { flat.MatMulTransB(team, dst, m, n, k, a, b, false) },
		TransA: func(dst []float32) { flat.MatMulTransA(team, dst, m, n, k, a, b, false) },
	} {
		t.Run(string(form), func(t *testing.T) {
			ours := make([]float32, m*n)
			multiply(ours)
			references, err := runner.SGEMM(context.Background(), form, m, n, k, a, b, 2)
			skipMissing(t, err)
			defer CloseAll(references)
			for _, r := range references {
				same(t, r, ours)
			}
		})
	}
}

// A reference that fails at any time reports the reason.
func TestReferenceFails(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	for name, tc := range map[string]struct{ script, want string }{
		"at once":        {"echo first; echo 'an error: no operands' >&2; exit 3", `printed "first"`},
		"before ready":   {"echo 'an error: no operands' >&2; exit 3", "an error: no operands: exit status 3"},
		"after ready":    {"echo ready; read line; echo 'an error: no memory' >&2; exit 4", "an error: no memory: exit status 4"},
		"with nonsense":  {"echo ready; read line; echo soon", `reported "soon" instead of seconds`},
		"with no answer": {"echo ready", "it ended"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := newRunner(t).start(context.Background(), "rival", nil, nil, []string{"sh", "-c", tc.script})
			if err == nil {
				defer r.Close()
				err = r.Run(time.Millisecond)
			}
			if fault.KindOf(err) != fault.Runtime || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// Without the tools every yardstick is Missing, and names a remedy.
func TestToolsAreMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	runner := newRunner(t)
	_, err := runner.SGEMM(context.Background(), Plain, 1, 1, 1, make([]float32, 1), make([]float32, 1), 1)
	if fault.KindOf(err) != fault.Missing || !strings.Contains(fmt.Sprint(err), "install gcc") {
		t.Errorf("without gcc: %v", err)
	}
}
