//go:build cgo

package driver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/cuda/device"
	"siafu/internal/fault"
	"siafu/internal/testkit/drivertest"
)

// fake returns a device of the stand-in library.
func fake(t *testing.T) *opened {
	t.Helper()
	drivertest.StartLog(t)
	l, err := load(drivertest.Build(t, "testdata/fake.c"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.open(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	drivertest.Log(t)
	return d
}

// A host without driver, with one that is too old or does not start, or without a GPU that
// kernels run on, is a Config fault with cause and remedy.
func TestNoGPU(t *testing.T) {
	whole, other := drivertest.Build(t, "testdata/fake.c"), filepath.Join(t.TempDir(), "other.c")
	if err := os.WriteFile(other, []byte("int cuInit(unsigned int f) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	partial := drivertest.Build(t, other)
	for name, c := range map[string]struct {
		library, variable, value string
		says                     []string
	}{
		"no library": {"libno-such-driver.so.1", "FAKE_FAIL", "",
			[]string{"no NVIDIA driver", "libno-such-driver.so.1", "install the driver"}},
		"no such call":    {partial, "FAKE_FAIL", "", []string{"no NVIDIA driver of CUDA 11.4", "undefined symbol"}},
		"no device":       {whole, "FAKE_FAIL", "cuInit=100", []string{"finds no GPU", "CUDA_ERROR_NO_DEVICE", "--gres=gpu:1"}},
		"none counted":    {whole, "FAKE_COUNT", "0", []string{"finds no GPU", "CUDA_VISIBLE_DEVICES"}},
		"does not start":  {whole, "FAKE_FAIL", "cuInit=803", []string{"does not start", "CUDA error 803", "nvidia-smi"}},
		"an old GPU":      {whole, "FAKE_MAJOR", "6", []string{"GPU 0 (Fake 40)", "compute capability 6.", "7.0"}},
		"a count of none": {whole, "FAKE_FAIL", "cuDeviceGetCount=100", []string{"finds no GPU"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(c.variable, c.value)
			l, err := load(c.library)
			if err == nil {
				_, err = l.list()
			}
			if err == nil {
				_, err = l.open(0)
			}
			if fault.ExitCode(err) != 78 {
				t.Fatalf("exit %d, %v", fault.ExitCode(err), err)
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
		})
	}
}

// The binding passes the conformance suite of devices.
func TestSuite(t *testing.T) {
	l, err := load(drivertest.Build(t, "testdata/fake.c"))
	if err != nil {
		t.Fatal(err)
	}
	drivertest.Suite(t, func(n int) (device.Device, error) {
		d, err := l.open(n)
		if err != nil {
			return nil, err
		}
		return d, nil
	})
}

// A GPU is described before it is opened.
func TestList(t *testing.T) {
	t.Setenv("FAKE_COUNT", "2")
	gpus, err := fake(t).list()
	want := []GPU{{"Fake 40", strings.Repeat("28", 16), "12.4", 5 << 30}, {"Fake 41", strings.Repeat("29", 16), "12.4", 5 << 30}}
	if err != nil || !slices.Equal(gpus, want) {
		t.Errorf("%+v, %v", gpus, err)
	}
}

// TestErrors checks that errors have the driver's messages.
func TestErrors(t *testing.T) {
	d := fake(t)
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	e, err := d.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	for fail, c := range map[string]struct {
		do   func() error
		says string
	}{
		"cuMemAlloc_v2=2": {func() error { _, err := d.Alloc(99); return err },
			"99 bytes: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"},
		"cuModuleLoadDataEx=218": {func() error { _, err := d.Load("sums", "x"); return err },
			"sums: cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX: as a test asks: ptxas: line 1"},
		"cuStreamSynchronize=700": {s.Synchronize, "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"},
		"cuEventQuery=1":          {func() error { _, err := e.Done(); return err }, "cuEventQuery: CUDA error 1"},
		"cuDevicePrimaryCtxRetain=2": {func() error { _, err := d.open(0); return err },
			"cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY"},
	} {
		t.Run(fail, func(t *testing.T) {
			t.Setenv("FAKE_FAIL", fail)
			if err := c.do(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

// List works on this host, with or without GPU.
func TestHere(t *testing.T) {
	gpus, err := List()
	if err == nil && len(gpus) > 0 {
		t.Logf("%+v", gpus)
		return
	}
	if _, opened := Open(0); fault.ExitCode(err) != 78 || fault.ExitCode(opened) != 78 {
		t.Errorf("%v, %v", err, opened)
	}
}
