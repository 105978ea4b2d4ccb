package drivertest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"siafu/cuda"
	"siafu/cuda/device"
)

// Suite tests the devices of a binding that calls the stand-in library. open opens GPU n.
func Suite(t *testing.T, open func(n int) (device.Device, error)) {
	for name, test := range map[string]func(*testing.T, device.Device){
		"properties": properties, "calls": calls, "errors": failures, "threads": threads, "kernels": ops,
	} {
		t.Run(name, func(t *testing.T) {
			StartLog(t)
			t.Setenv("FAKE_COUNT", "2")
			d, err := open(0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { d.Close() })
			Log(t)
			test(t, d)
		})
	}
	t.Run("refused", func(t *testing.T) {
		if _, err := open(7); err == nil {
			t.Error("GPU 7 of 1 is opened")
		}
		t.Setenv("FAKE_MAJOR", "6")
		if _, err := open(0); err == nil || !strings.Contains(err.Error(), "compute capability 6.") {
			t.Errorf("an old GPU: %v", err)
		}
	})
}

// properties checks each property and the memory of the device.
func properties(t *testing.T, d device.Device) {
	p := device.Properties{
		Name: "Fake 40", Driver: "12.4", Major: 8, Minor: 1076, Multiprocessors: 1016, MemoryClock: 1036, MemoryBus: 1037,
		WarpSize: 1010, ThreadsPerBlock: 1001,
		SharedPerBlock: 1008, Block: [3]int{1002, 1003, 1004}, Grid: [3]int{1005, 1006, 1007},
	}
	if d.Properties() != p {
		t.Errorf("%+v", d.Properties())
	}
	if free, total, err := d.Memory(); free != 3<<30 || total != 5<<30 || err != nil {
		t.Errorf("%d of %d, %v", free, total, err)
	}
	thread, ok := d.(device.Threaded)
	if !ok {
		t.Fatal("the device is not device.Threaded")
	}
	if call, context := thread.Thread(); call == nil || uintptr(context) != 0x1000 {
		t.Errorf("call %v, context %v", call, context)
	}
}

// calls checks that each method makes its calls in order, with the right arguments.
func calls(t *testing.T, d device.Device) {
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
	must(d.Pin(got))
	must(s.BeginIn(p, got[:3]))
	must(s.BeginOut(got, p))
	must(d.Unpin(got))
	if err := d.Unpin(got); err == nil {
		t.Error("memory is unpinned that is not pinned")
	}
	if string(got) != "dxxdxx" {
		t.Errorf("memory holds %q", got)
	}
	var args device.Args
	t.Setenv("FAKE_PARAMETERS", "4,8")
	must(s.Launch(f, device.Launch{Grid: [3]int{70000, 2}, Block: [3]int{32, 8, 1}, Shared: 64}, args.Int32(-2).Ptr(0x1122334455667788)))
	t.Setenv("FAKE_PARAMETERS", "")
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
		"cuMemHostRegister_v2 6 1", "cuMemcpyHtoDAsync_v2 3", "cuMemcpyDtoHAsync_v2 6", "cuMemHostUnregister",
		"cuLaunchKernel 70000x2x1 32x8x1 64 feffffff000000008877665544332211", "cuLaunchKernel 1x1x1 1x1x1 0 ",
		"cuEventCreate 0", "cuEventRecord", "cuStreamWaitEvent 0", "cuEventQuery", "cuEventSynchronize", "cuEventElapsedTime",
		"cuEventDestroy_v2", "cuCtxSynchronize", "cuMemFree_v2", "cuModuleUnload", "cuStreamDestroy_v2",
		"cuCtxSynchronize", "cuMemFree_v2", "cuDevicePrimaryCtxRelease_v2 40", // its resources
	}
	if got := Log(t); !slices.Equal(got, want) {
		t.Errorf("called\n%q\nwant\n%q", got, want)
	}
	if _, err := d.Alloc(1); err == nil {
		t.Error("a closed device gives memory")
	}
}

// failures checks that errors name their call, and that callers can tell those of
// package device.
func failures(t *testing.T, d device.Device) {
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Load("m", "text")
	if err != nil {
		t.Fatal(err)
	}
	e, err := d.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	f, err := m.Function("kernel")
	if err != nil {
		t.Fatal(err)
	}
	for fail, c := range map[string]struct {
		do   func() error
		says string
		is   error
	}{
		"cuMemAlloc_v2=2": {func() error { _, err := d.Alloc(99); return err }, "99 bytes: cuMemAlloc: ", device.ErrMemory},
		"cuInit=0": {func() error { _, err := m.Function("absent"); return err },
			"m: absent: cuModuleGetFunction: ", device.ErrNotFound},
		"cuInit=1": {func() error { _, _, err := m.Global("absent"); return err },
			"m: absent: cuModuleGetGlobal: ", device.ErrNotFound},
		"cuModuleLoadDataEx=218":   {func() error { _, err := d.Load("sums", "x"); return err }, "ptxas: line 1", nil},
		"cuStreamSynchronize=700":  {s.Synchronize, "cuStreamSynchronize: ", nil},
		"cuEventQuery=1":           {func() error { _, err := e.Done(); return err }, "cuEventQuery: ", nil},
		"cuMemcpyDtoHAsync_v2=700": {func() error { return s.CopyOut(make([]byte, 1), 1) }, "cuMemcpyDtoHAsync: ", nil},
		"cuLaunchKernel=700": {func() error { return s.Launch(f, device.Launch{}, new(device.Args)) },
			"kernel: cuLaunchKernel: ", nil},
		"cuInit=2": {func() error { return s.Launch(f, device.Launch{Grid: [3]int{-1}}, new(device.Args)) }, "shape", nil},
		"cuInit=3": {func() error { return d.Free(12345) }, "no resource", nil},
	} {
		t.Run(fail, func(t *testing.T) {
			t.Setenv("FAKE_FAIL", fail)
			if err := c.do(); err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Setenv("FAKE_FAIL", "cuEventQuery=600")
	if done, err := e.Done(); done || err != nil {
		t.Errorf("an event that has not happened: %t, %v", done, err)
	}
}

// threads checks that calls find their context on every thread of a goroutine.
func threads(t *testing.T, d device.Device) {
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

// ops checks that package cuda loads its kernels and gives back all memory.
func ops(t *testing.T, d device.Device) {
	o, err := cuda.New(d, cuda.Own)
	if err != nil {
		t.Fatal(err)
	}
	o.Close()
	balance := map[string]int{"cuMemAlloc_v2": 1, "cuMemFree_v2": -1, "cuModuleLoadDataEx": 1, "cuModuleUnload": -1, "cuStreamCreate": 1,
		"cuStreamDestroy_v2": -1, "cuEventCreate": 1, "cuEventDestroy_v2": -1}
	left := 0
	for _, line := range Log(t) {
		name, _, _ := strings.Cut(line, " ")
		left += balance[name]
	}
	if left != 0 {
		t.Errorf("%d resources are left", left)
	}
}
