package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siafu/cuda/device"
	"siafu/cuda/driver"
	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/ptx"
	"siafu/kernels"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
)

// interpreterEffort returns an effort on the interpreter of kernels, which is not a GPU: its times
// are meaningless. Epochs run on the processor.
func interpreterEffort(s ptx.Settings) gpuEffort {
	return gpuEffort{
		copied: 1 << 12, torch: "cpu", turn: 20 * time.Millisecond,
		open: func() (device.Device, error) { return ptx.New(s), nil },
		train: func(ctx context.Context, data string, c config.Config) (*runfolder.Run, error) {
			return trial(ctx, "bench cuda", data, c)
		},
	}
}

// smallGraph returns a graph of few vertices, directed or not.
func smallGraph(t *testing.T, directed bool) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	if _, err := graph.Write(data, tinyGraph(!directed), false); err != nil {
		t.Fatal(err)
	}
	return data
}

// The whole command, with and without libraries: every line exists once, results of sides
// agree, epochs follow, and missing libraries are named. The table names the device.
func TestCUDA(t *testing.T) {
	t.Setenv("PYTHONHOME", t.TempDir()) // no Python starts, which would train for seconds
	for name, libraries := range hosttest.Share(t, 2, map[string]bool{"libraries": true, "none": false}) {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			o := CUDAOptions{Data: smallGraph(t, libraries), Repeats: 1, Epochs: 2}
			if err := measureGPU(context.Background(), o, interpreterEffort(ptx.Settings{Libraries: libraries}), &out); err != nil {
				t.Fatal(err)
			}
			text := out.String()
			for want, count := range map[string]int{
				"device: PTX interpreter (a checker, no GPU)": 1, "\nSpMM  ": 3, "\nSpMM bf16 ": 3, "tiny 256 ": 2 + 6*b2i(libraries),
				"\nAttentionGather ": 3, "\nAttentionGradDst ": 3, "\nAttentionGradSrc ": 3, "\n  cuSPARSE ALG2 ": 6 * b2i(libraries),
				"\n  cuSPARSE ALG3 ": 6 * b2i(libraries), "\n  cuBLAS ": 9 * b2i(libraries), "\nMatMul ": 3,
				"\nMatMulTransA ": 3, "\nMatMulTransB ": 3,
				"left out: cuBLAS: ": b2i(!libraries), "left out: cuSPARSE: ": b2i(!libraries),
				"\nGCN, columns [6 128 3]: ": 1, "\nGAT, columns [6 64 3]: ": 1, "  left out: PyG: ": 2 * b2i(libraries),
			} {
				if got := strings.Count(text, want); got != count {
					t.Errorf("%q is there %d times, not %d:\n%s", want, got, count, text)
				}
			}
		})
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// If PyTorch is installed, its losses are compared: a different training is detected.
func TestCUDAEpochs(t *testing.T) {
	e := interpreterEffort(ptx.Settings{})
	for name, change := range map[string]float64{"the same": 0, "another": 1e-2} {
		t.Run(name, func(t *testing.T) {
			e := e
			train := e.train
			e.train = func(ctx context.Context, data string, c config.Config) (*runfolder.Run, error) {
				c.LR += change
				return train(ctx, data, c)
			}
			data := smallGraph(t, true)
			d, err := graph.Open(data)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			var out strings.Builder
			err = gpuEpochs(context.Background(), CUDAOptions{Data: data, Epochs: 8}, e, d, &out)
			if strings.Contains(out.String(), "no Python with torch, numpy;") {
				t.Skip("no PyTorch here")
			}
			if (err == nil) != (change == 0) || err == nil && !strings.Contains(out.String(), "  ÂX once: epochs of ") {
				t.Errorf("%v\n%s", err, &out)
			}
			t.Log(out.String())
		})
	}
}

// --only selects lines; invalid flags, and a missing dataset, are refused.
func TestCUDAOptions(t *testing.T) {
	data := smallGraph(t, true)
	for name, c := range map[string]struct {
		o    CUDAOptions
		kind fault.Kind
	}{
		"no line":    {CUDAOptions{Data: data, Repeats: 1, Only: "convolution"}, fault.Usage},
		"no regexp":  {CUDAOptions{Data: data, Repeats: 1, Only: "("}, fault.Usage},
		"no repeat":  {CUDAOptions{Data: data}, fault.Usage},
		"one epoch":  {CUDAOptions{Data: data, Repeats: 1, Epochs: 1}, fault.Usage},
		"no dataset": {CUDAOptions{Data: "none", Repeats: 1}, fault.Missing},
	} {
		t.Run(name, func(t *testing.T) {
			if err := measureGPU(context.Background(), c.o, interpreterEffort(ptx.Settings{}), t.Output()); fault.KindOf(err) != c.kind {
				t.Errorf("%v", err)
			}
		})
	}
	var out strings.Builder
	o := CUDAOptions{Like: "ogbn-arxiv", Scale: 1e-3, Repeats: 1, Only: "^SpMM ogbn-arxiv-like 41$"}
	if err := measureGPU(context.Background(), o, interpreterEffort(ptx.Settings{Libraries: true}), &out); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "SpMM") != 1 || strings.Count(out.String(), "  cuSPARSE") != 3 || strings.Contains(out.String(), "GCN") {
		t.Error(out.String())
	}
}

// oldCuSPARSE is a device whose cuSPARSE knows no BF16.
type oldCuSPARSE struct{ *ptx.Device }

func (d oldCuSPARSE) Sparse(s device.Stream) (device.Sparse, error) {
	l, err := d.Device.Sparse(s)
	return olderSparse{l}, err
}

type olderSparse struct{ device.Sparse }

func (l olderSparse) SpMM(a device.CSR, b, c device.Dense, algorithm device.Algorithm) (device.SpMM, error) {
	if a.Half {
		return nil, errors.New("CUSPARSE_STATUS_NOT_SUPPORTED")
	}
	return l.Sparse.SpMM(a, b, c, algorithm)
}

// Unsupported features of a library's version are omitted with a message; all else is
// measured.
func TestCUDAOlderLibrary(t *testing.T) {
	e := interpreterEffort(ptx.Settings{})
	e.open = func() (device.Device, error) { return oldCuSPARSE{ptx.New(ptx.Settings{Libraries: true})}, nil }
	var out strings.Builder
	o := CUDAOptions{Data: smallGraph(t, true), Repeats: 1, Only: "^SpMM.* 41$"}
	if err := measureGPU(context.Background(), o, e, &out); err != nil {
		t.Fatal(err)
	}
	for want, count := range map[string]int{"\nSpMM": 2, "\n  cuSPARSE": 3,
		"left out: cuSPARSE ALG2 of 41 columns, bf16: true: CUSPARSE_STATUS_NOT_SUPPORTED\n": 1} {
		if got := strings.Count(out.String(), want); got != count {
			t.Errorf("%q is there %d times, not %d:\n%s", want, got, count, &out)
		}
	}
}

// A side with a different result is detected.
func TestCUDADisagreement(t *testing.T) {
	r, err := newRig(CUDAOptions{Repeats: 1}, interpreterEffort(ptx.Settings{Libraries: true}), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	a, o := r.own, gpuCase{work: work{kernel: "a sum", shape: "of 4"}}
	for name, c := range map[string]struct {
		theirs float32
		agrees bool
	}{"same": {4, true}, "rounding": {4.0000005, true}, "TF32": {4.001, false}, "a term less": {3, false}} {
		t.Run(name, func(t *testing.T) {
			arena := mapped.NewArena()
			defer arena.Free()
			work := gpuWork{terms: func(int) int { return 4 }}
			for _, x := range []float32{4, c.theirs} {
				m := kernels.NewMat(a, arena, 1, 1)
				kernels.Write(a, m, []float32{x})
				work.results = append(work.results, m)
			}
			differ, err := r.compare(o, "another side", work, 1)
			if (err == nil) != c.agrees ||
				err != nil && (fault.KindOf(err) != fault.Runtime || !strings.Contains(err.Error(), "another side")) {
				t.Errorf("%v, %v", differ, err)
			}
		})
	}
}

// On a host without a GPU the command names what is missing before it makes a graph.
func TestCUDAWithoutGPU(t *testing.T) {
	if list, err := driver.List(); err == nil {
		t.Skipf("this host has GPUs: %+v", list)
	}
	t.Setenv("TMPDIR", t.TempDir())
	err := CUDAOptions{Like: "reddit-small", Scale: 1, Repeats: 1}.Run(context.Background(), t.Output())
	left, _ := os.ReadDir(os.Getenv("TMPDIR"))
	if fault.ExitCode(err) != 78 || !strings.Contains(err.Error(), "cuda: ") || len(left) != 0 {
		t.Errorf("exit %d, %v; left %v", fault.ExitCode(err), err, left)
	}
}
