package decodertest

import (
	"runtime/metrics"
	"testing"

	"golang.org/x/sys/unix"

	"siafu/internal/host"
)

// A decoder may allocate Constant bytes for buffers of a fixed size, and Factor bytes per input
// byte: one byte of a pickle can become an object with a header.
const (
	Constant = 64 << 20
	Factor   = 256
)

// address is the allowed address space beyond a decoder's memory: Go reserves it in large
// pieces, and mapped arrays use memory only when written.
const address = 2 << 30

// Bounded runs decode, whose input has N bytes, and fails the test if decode uses more than
// Constant + Factor·N bytes. It checks two sums: all allocations on the Go heap, and the growth
// of the process's resident memory, which includes mapped arrays. A limit on the address space
// ends the process before a wrong decoder exhausts the machine's memory.
//
// Bounded also counts memory of tests that run at the same time. Do not use it in parallel
// tests.
func Bounded(t testing.TB, given int64, decode func()) {
	t.Helper()
	most := uint64(Constant + Factor*given)
	defer limit(t, most+address)()
	resident := uint64(host.Status("VmRSS:"))
	host.ForgetPeak() // if the kernel refuses, an earlier peak hides lower ones
	Heap(t, given, decode)
	if peak := uint64(host.Status("VmHWM:")); peak > resident+most {
		t.Errorf("resident memory grew by %d bytes for %d given, at most %d are expected", peak-resident, given, most)
	}
}

// Heap is Bounded for allocations on the Go heap only. It takes microseconds and is suitable
// for fuzz targets.
func Heap(t testing.TB, given int64, decode func()) {
	t.Helper()
	most, before := uint64(Constant+Factor*given), allocated()
	decode()
	if taken := allocated() - before; taken > most {
		t.Errorf("%d bytes were allocated for %d given, at most %d are expected", taken, given, most)
	}
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// limit allows the address space to grow by N bytes. restore removes the limit.
func limit(t testing.TB, more uint64) (restore func()) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &old); err != nil {
		t.Fatal(err)
	}
	now := unix.Rlimit{Cur: min(uint64(host.Status("VmSize:"))+more, old.Max), Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_AS, &now); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Setrlimit(unix.RLIMIT_AS, &old); err != nil {
			t.Fatal(err)
		}
	}
}
