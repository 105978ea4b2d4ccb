package cuda_test

import (
	"strings"
	"testing"

	"siafu/cuda"
	"siafu/cuda/driver"
	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/kerneltest"
	"siafu/internal/testkit/ptx"
	"siafu/kernels"
)

// An Ops passes the conformance suite on the stand-in for a device, which runs the PTX
// and finds wrong accesses, races, and memory that is read before it is written. Two
// devices take turns, of which one runs blocks and warps backwards: the suite demands
// the same bits of all calls of a case. It is the short suite; SIAFU_BIG=1 asks for all
// shapes, which take minutes.
func TestOps(t *testing.T) {
	if !hosttest.Big() {
		kerneltest.Brief()
	}
	all := [2]*cuda.Ops{opsOn(t, ptx.Settings{}, cuda.Own), opsOn(t, ptx.Settings{Backwards: true}, cuda.Own)}
	calls := 0
	kerneltest.Ops(func(*kernels.Team) kernels.Ops {
		calls++
		return all[calls%len(all)]
	}).All(t)
}

// On this host's GPU an Ops passes the suite: without SIAFU_BIG=1 the short one. Dense products of cuBLAS
// do too.
func TestOpsOnTheGPU(t *testing.T) {
	if !hosttest.Big() {
		kerneltest.Brief()
	}
	on := func(t *testing.T, p cuda.Products) kerneltest.Suite {
		d, err := driver.Open(0)
		if err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { d.Close() })
		o, err := cuda.New(d, p)
		if p == cuda.CuBLAS && err != nil {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(o.Close)
		return kerneltest.Ops(func(*kernels.Team) kernels.Ops { return o })
	}
	t.Run("own", func(t *testing.T) { on(t, cuda.Own).All(t) })
	t.Run("cuBLAS", func(t *testing.T) { on(t, cuda.CuBLAS).Products(t) })
}

// opsOn returns an Ops on a stand-in for a device, until the test's end.
func opsOn(t *testing.T, s ptx.Settings, p cuda.Products) *cuda.Ops {
	t.Helper()
	d := ptx.New(s)
	o, err := cuda.New(d, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close(); d.Close() })
	return o
}

// With cuBLAS on the device, dense products use it. Operands, their order, strides and
// transposes match the suite on a stand-in that has only BLAS.
func TestProductsOfALibrary(t *testing.T) {
	kerneltest.Brief()
	o := opsOn(t, ptx.Settings{Libraries: true}, cuda.Auto)
	if want := "with a stand-in for cuBLAS"; !strings.HasSuffix(o.Kernel(), want) {
		t.Errorf("%q, want %q", o.Kernel(), want)
	}
	kerneltest.Ops(func(*kernels.Team) kernels.Ops { return o }).Products(t)
}

// A device without cuBLAS computes with own products, unless a run requires cuBLAS.
func TestLibraryIsAbsent(t *testing.T) {
	if o := opsOn(t, ptx.Settings{}, cuda.Auto); strings.Contains(o.Kernel(), "cuBLAS") {
		t.Error(o.Kernel())
	}
	d := ptx.New(ptx.Settings{})
	defer d.Close()
	if _, err := cuda.New(d, cuda.CuBLAS); fault.ExitCode(err) != 78 || !strings.Contains(err.Error(), "--tensor blas=own") {
		t.Errorf("exit %d, %v", fault.ExitCode(err), err)
	}
}
