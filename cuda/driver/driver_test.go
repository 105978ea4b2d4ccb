//go:build cuda && cgo

package driver

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"siafu/cuda"
	"siafu/cuda/device"
	"siafu/graph/fault"
)

// build makes a shared library of a C file.
func build(t *testing.T, source string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler here")
	}
	to := filepath.Join(t.TempDir(), "libfake.so")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", to, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return to
}

// calls reads what has been called since the last time.
func calls(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(os.Getenv("FAKE_LOG"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(os.Getenv("FAKE_LOG"), 0); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// fake is the library without a GPU, and a device of it.
func fake(t *testing.T) *opened {
	t.Helper()
	t.Setenv("FAKE_LOG", filepath.Join(t.TempDir(), "calls"))
	l, err := load(build(t, "testdata/fake.c"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.open(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	calls(t)
	return d
}

// A host without driver, with one that is too old or does not start, and one without
// a GPU that kernels run on: each is said, with what helps, and is the configuration's
// fault.
func TestNoGPU(t *testing.T) {
	whole, other := build(t, "testdata/fake.c"), filepath.Join(t.TempDir(), "other.c")
	if err := os.WriteFile(other, []byte("int cuInit(unsigned int f) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	partial := build(t, other)
	for name, c := range map[string]struct {
		library, variable, value string
		says                     []string
	}{
		"no library":      {"libno-such-driver.so.1", "FAKE_FAIL", "", []string{"no NVIDIA driver", "libno-such-driver.so.1", "install the driver"}},
		"no such call":    {partial, "FAKE_FAIL", "", []string{"no NVIDIA driver of CUDA 11.4", "undefined symbol"}},
		"no device":       {whole, "FAKE_FAIL", "cuInit=100", []string{"finds no GPU", "CUDA_ERROR_NO_DEVICE", "--gres=gpu:1"}},
		"none counted":    {whole, "FAKE_COUNT", "0", []string{"finds no GPU", "CUDA_VISIBLE_DEVICES"}},
		"does not start":  {whole, "FAKE_FAIL", "cuInit=803", []string{"does not start", "CUDA error 803", "nvidia-smi"}},
		"an old GPU":      {whole, "FAKE_MAJOR", "6", []string{"GPU 0, a Fake 40", "compute capability 6.", "7.0"}},
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

// A GPU is described before it is opened, and after.
func TestProperties(t *testing.T) {
	t.Setenv("FAKE_COUNT", "2")
	d := fake(t)
	gpus, err := d.list()
	want := []GPU{{"Fake 40", strings.Repeat("28", 16), "12.4", 5 << 30}, {"Fake 41", strings.Repeat("29", 16), "12.4", 5 << 30}}
	if err != nil || !slices.Equal(gpus, want) {
		t.Errorf("%+v, %v", gpus, err)
	}
	p := device.Properties{
		Name: "Fake 40", Driver: "12.4", Major: 8, Minor: 1076, Multiprocessors: 1016, MemoryClock: 1036, MemoryBus: 1037, WarpSize: 1010, ThreadsPerBlock: 1001,
		SharedPerBlock: 1008, Block: [3]int{1002, 1003, 1004}, Grid: [3]int{1005, 1006, 1007},
	}
	if d.Properties() != p {
		t.Errorf("%+v", d.Properties())
	}
	if free, total, err := d.Memory(); free != 3<<30 || total != 5<<30 || err != nil {
		t.Errorf("%d of %d, %v", free, total, err)
	}
	if _, err := d.library.open(2); err == nil {
		t.Error("a third device is opened")
	}
}

// Each call passes on what it is given, in order, and what it waits for.
func TestCalls(t *testing.T) {
	d := fake(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	m, err := d.Load("a module", ".version 6.0")
	must(err)
	f, err := m.Function("kernel")
	must(err)
	at, size, err := m.Global("table")
	must(err)
	if at != 0x4000 || size != 12 || f.Name() != "kernel" {
		t.Errorf("%#x, %d, %s", at, size, f.Name())
	}
	s, err := d.NewStream()
	must(err)
	p, err := d.Alloc(6)
	must(err)
	none, err := d.Alloc(0)
	must(err)
	must(s.CopyIn(p, []byte("abcdef")))
	must(s.Set(p+4, 'x', 2))
	must(s.Copy(p, p+3, 3))
	got := make([]byte, 6)
	must(s.CopyOut(got, p))
	if string(got) != "dxxdxx" {
		t.Errorf("memory holds %q", got)
	}
	var args device.Args
	must(s.Launch(f, device.Launch{Grid: [3]int{70000, 2}, Block: [3]int{32, 8, 1}, Shared: 64}, args.Int32(-2).Ptr(0x1122334455667788)))
	must(s.Launch(f, device.Launch{}, args.Reset()))
	e, err := d.NewEvent()
	must(err)
	must(s.Record(e))
	must(s.Wait(e))
	if done, err := e.Done(); !done || err != nil {
		t.Errorf("%t, %v", done, err)
	}
	must(e.Synchronize())
	if ms, err := e.Since(e); ms != 1.5 || err != nil {
		t.Errorf("%v ms, %v", ms, err)
	}
	must(e.Close())
	must(d.Free(none))
	must(m.Unload())
	must(s.Close())
	must(d.Close())
	must(d.Close())
	want := []string{
		"cuModuleLoadDataEx 12", "cuModuleGetFunction kernel", "cuModuleGetGlobal_v2 table", "cuStreamCreate 1",
		"cuMemAlloc_v2 6", "cuMemAlloc_v2 1",
		"cuMemcpyHtoDAsync_v2 6", "cuStreamSynchronize", "cuMemsetD8Async 120 2", "cuMemcpyDtoDAsync_v2 3",
		"cuMemcpyDtoHAsync_v2 6", "cuStreamSynchronize",
		"cuLaunchKernel 70000x2x1 32x8x1 64 feffffff000000008877665544332211", "cuLaunchKernel 1x1x1 1x1x1 0 ",
		"cuEventCreate 0", "cuEventRecord", "cuStreamWaitEvent 0", "cuEventQuery", "cuEventSynchronize", "cuEventElapsedTime",
		"cuEventDestroy_v2", "cuCtxSynchronize", "cuMemFree_v2", "cuModuleUnload", "cuStreamDestroy_v2",
		"cuCtxSynchronize", "cuMemFree_v2", "cuDevicePrimaryCtxRelease_v2 40", // what was held
	}
	if got := calls(t); !slices.Equal(got, want) {
		t.Errorf("called\n%q\nwant\n%q", got, want)
	}
	if _, err := d.Alloc(1); err == nil {
		t.Error("a closed device gives memory")
	}
}

// Errors have the driver's words, and those that callers tell apart are known.
func TestErrors(t *testing.T) {
	d := fake(t)
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Load("m", "text")
	if err != nil {
		t.Fatal(err)
	}
	for fail, c := range map[string]struct {
		do   func() error
		says string
		is   error
	}{
		"cuMemAlloc_v2=2":            {func() error { _, err := d.Alloc(99); return err }, "99 bytes: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY", device.ErrMemory},
		"cuInit=0":                   {func() error { _, err := m.Function("absent"); return err }, "m: absent: ", device.ErrNotFound},
		"cuModuleLoadDataEx=218":     {func() error { _, err := d.Load("sums", "x"); return err }, "sums: cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX: as a test asks: ptxas: line 1", nil},
		"cuStreamSynchronize=700":    {s.Synchronize, "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered", nil},
		"cuEventQuery=1":             {func() error { e, _ := d.NewEvent(); _, err := e.Done(); return err }, "cuEventQuery: CUDA error 1", nil},
		"cuMemcpyDtoHAsync_v2=700":   {func() error { return s.CopyOut(make([]byte, 1), 1) }, "ILLEGAL_ADDRESS", nil},
		"cuDevicePrimaryCtxRetain=2": {func() error { _, err := d.open(0); return err }, "cuDevicePrimaryCtxRetain", device.ErrMemory},
	} {
		t.Run(fail, func(t *testing.T) {
			t.Setenv("FAKE_FAIL", fail)
			if err := c.do(); err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Setenv("FAKE_FAIL", "cuEventQuery=600")
	if e, err := d.NewEvent(); err != nil {
		t.Fatal(err)
	} else if done, err := e.Done(); done || err != nil {
		t.Errorf("what has not happened is %t, %v", done, err)
	}
	if err := d.Free(12345); err == nil {
		t.Error("an address is freed that was never given")
	}
}

// Calls find their context on whatever thread a goroutine runs.
func TestThreads(t *testing.T) {
	d := fake(t)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 50 {
				p, err := d.Alloc(64)
				if err == nil {
					err = d.Free(p)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
}

// The Ops of package cuda loads its kernels through the driver, and closes.
func TestOps(t *testing.T) {
	d := fake(t)
	o, err := cuda.New(d, cuda.Own)
	if err != nil {
		t.Fatal(err)
	}
	o.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.held) != 0 {
		t.Errorf("%d things are held", len(d.held))
	}
}

// This host says what it is, whatever that is.
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
