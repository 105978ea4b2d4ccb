package cuda_test

import (
	"testing"

	"siafu/cuda"
	"siafu/cuda/ptx"
	"siafu/kernels"
	"siafu/kernels/kerneltest"
)

// An Ops passes the conformance suite, the short one, on the stand-in for a device,
// which runs the PTX and finds wrong accesses, races, and memory that is read before
// it is written.
func TestOps(t *testing.T) {
	kerneltest.Brief()
	d := ptx.New(ptx.Settings{})
	o, err := cuda.New(d)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	defer o.Close()
	kerneltest.Ops(t, func(*kernels.Team) kernels.Ops { return o })
}
