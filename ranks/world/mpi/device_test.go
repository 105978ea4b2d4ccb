//go:build mpi

package mpi

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	halo "siafu/halo/comm"
	"siafu/ranks/world"
)

var _ halo.Aware = (*comm)(nil)

// A library that does not say that it knows devices is given none of their memory;
// one that says so, once a device lends itself, whose context then is that of each
// thread that calls MPI. The one here has no CUDA, and another stands before it that
// says it has.
func TestDeviceMemory(t *testing.T) {
	if out, code := play(t, 2, "no device"); code != 0 {
		t.Errorf("exit %d:\n%s", code, out)
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler here")
	}
	dir := t.TempDir()
	source, lib := filepath.Join(dir, "says.c"), filepath.Join(dir, "libsays.so")
	text := `
int MPIX_Query_cuda_support(void) { return 1; }
int lend(void *calls) { ++*(int *)calls; return 0; }
int calls_of[1];
`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", lib, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("LD_PRELOAD", lib)
	if out, code := play(t, 2, "a device"); code != 0 {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

func init() {
	scenes["no device"] = func(t *testing.T, w world.Comm, _ func()) {
		c := w.(*comm)
		call := symbol("getppid") // never called
		if c.UseDevice(call, nil); c.DeviceMemory(1) {
			t.Error("the library is given memory of a device")
		}
	}
	scenes["a device"] = func(t *testing.T, w world.Comm, _ func()) {
		c, count := w.(*comm), (*int32)(symbol("calls_of"))
		if c.DeviceMemory(1) {
			t.Error("memory of no device")
		}
		c.UseDevice(symbol("lend"), symbol("calls_of"))
		if !c.DeviceMemory(1000) || c.DeviceMemory(1<<40) {
			t.Error("memory of a device is refused, or more than a call spans is taken")
		}
		send, recv, half := bytes.Repeat([]byte{byte(c.Rank())}, 8), make([]byte, 8), []int{4, 4}
		r, err := c.Ialltoallv(send, half, recv, half)
		if err == nil {
			err = r.Wait()
		}
		if err != nil || !slices.Equal(recv, []byte{0, 0, 0, 0, 1, 1, 1, 1}) {
			t.Errorf("%v, %v", recv, err)
		}
		if *count < 2 { // it begins, and is asked for
			t.Errorf("%d calls on threads that the device is lent to", *count)
		}
		c.UseDevice(nil, nil)
		before := *count
		if err := c.Barrier(); err != nil || *count != before || c.DeviceMemory(1) {
			t.Errorf("%v, %d calls for a device that is gone", err, *count-before)
		}
	}
}
