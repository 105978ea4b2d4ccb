package bench

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siafu/bench/yardstick"
	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// smallEffort is an effort for tests.
var smallEffort = effort{vertices: 300, budget: time.Microsecond, turns: 1}

// Every kernel and dataset has its line, with yardsticks or the reason for their absence.
func TestKernels(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if _, err := generate.Write(data, generate.Options{Name: "tiny", Vertices: 100, Edges: 400}, false); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"plain": "GB/s", "yardstick": "ours/theirs"} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			o := KernelsOptions{Threads: 2, Data: []string{data}, Yardstick: name == "yardstick"}
			if err := measureKernels(context.Background(), o, smallEffort, &out); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{
				want, "2 threads", "GFLOP/s", "SpMM                 uniform 300 x 41", "tiny 100 x 128",
				"[300 x 602] [602 x 128]", "[300 x 41] [128 x 41]ᵀ", "[300 x 128]ᵀ [300 x 41]",
				"BiasReLUDropout ", "BiasReLUDropoutGrad ", "ColumnSums", "SoftmaxCrossEntropy",
				"SparseMatMul ", "SparseMatMulTransA ", "Adam",
			} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the table lacks %q:\n%s", want, &out)
				}
			}
		})
	}
}

func TestKernelsOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		o    KernelsOptions
		want fault.Kind
	}{
		"no line":    {KernelsOptions{Only: "convolution"}, fault.Usage},
		"no regexp":  {KernelsOptions{Only: "("}, fault.Usage},
		"no dataset": {KernelsOptions{Data: []string{"none"}}, fault.Missing},
	} {
		t.Run(name, func(t *testing.T) {
			if err := measureKernels(context.Background(), tc.o, smallEffort, t.Output()); err == nil || fault.KindOf(err) != tc.want {
				t.Errorf("%v, want kind %v", err, tc.want)
			}
		})
	}
	var out strings.Builder
	if err := measureKernels(context.Background(), KernelsOptions{Only: "^Adam"}, smallEffort, &out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "SpMM") || !strings.Contains(out.String(), "Adam") {
		t.Errorf("--only=^Adam:\n%s", &out)
	}
}

// A reference with a different result is detected.
func TestDisagreementIsAFault(t *testing.T) {
	runner, err := yardstick.NewRunner()
	if err != nil {
		t.Fatal(err)
	}
	defer runner.Close()
	m := &meter{effort: smallEffort, team: kernels.NewTeam(1), runner: runner, w: t.Output()}
	defer m.team.Close()
	c := gatherCase("ring", 20, 20*randomDegree, 16, func(b *fixture) kernels.Gather {
		return gatherOf(b, b.regular(20, randomDegree), b.ids(20*randomDegree, 20, 1))
	})
	right := c.prepare
	c.prepare = func(b *fixture) (prepared, error) {
		p, err := right(b)
		gather := p.call
		p.call = func() { gather(); p.result[77] += 0.01 }
		return p, err
	}
	_, err = m.measure(context.Background(), c)
	if len(m.skipped) > 0 {
		t.Skip(m.skipped[0])
	}
	if err == nil || !strings.Contains(err.Error(), "element 77 is") {
		t.Errorf("%v, want the element that differs", err)
	}
}

// Bytes and operations of a call, counted by hand.
func TestWork(t *testing.T) {
	for _, tc := range []struct {
		name  string
		c     kernelCase
		flops float64
		bytes float64
	}{
		// 6 edges; 3 offsets and 2 scales per row; 4 columns of x and dst.
		{"gather", gatherCase("g", 3, 6, 4, nil), 2 * 6 * 4, 6*4 + 3*8 + 2*3*4 + 2*3*4*4},
		{"product", productCase("MatMul", yardstick.Plain, 2, 3, 5), 2 * 2 * 3 * 5, 4 * (2*5 + 5*3 + 2*3)},
		{"epilogue", epilogueCase("", 10, nil), 0, 2 * 4 * 10 * hiddenWidth},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.c.flops != tc.flops || tc.c.bytes != tc.bytes {
				t.Errorf("%v operations and %v bytes, want %v and %v", tc.c.flops, tc.c.bytes, tc.flops, tc.bytes)
			}
		})
	}
}

// Values of the operands spread over their range and depend on the seed.
func TestOperands(t *testing.T) {
	b := &fixture{kernels.NewTeam(2), mapped.NewArena()}
	defer b.team.Close()
	defer b.arena.Free()
	var sum, squares float64
	x := b.floats(100_000, 1)
	for _, v := range x {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	if mean, variance := sum/1e5, squares/1e5; mean < -0.01 || mean > 0.01 || variance < 0.32 || variance > 0.35 {
		t.Errorf("mean %v, variance %v: not uniform in ±1", mean, variance)
	}
	if y := b.floats(1, 2); x[0] == y[0] {
		t.Error("the seed does not matter")
	}
	var count [10]int
	for _, v := range b.ids(10_000, 10, 1) {
		count[v]++
	}
	for v, n := range count {
		if n < 900 || n > 1100 {
			t.Errorf("%d of 10000 ids are %d", n, v)
		}
	}
}
