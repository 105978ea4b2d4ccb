package cuda_test

import (
	"os"
	"testing"

	"siafu/cuda"
	"siafu/cuda/ptx"
	"siafu/kernels"
	"siafu/kernels/kerneltest"
)

// An Ops passes the conformance suite on the stand-in for a device, which runs the PTX
// and finds wrong accesses, races, and memory that is read before it is written. It is
// the short suite; SIAFU_BIG=1 asks for all shapes, which take minutes.
func TestOps(t *testing.T) {
	if os.Getenv("SIAFU_BIG") != "1" {
		kerneltest.Brief()
	}
	d := ptx.New(ptx.Settings{})
	o, err := cuda.New(d)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	defer o.Close()
	kerneltest.Ops(t, func(*kernels.Team) kernels.Ops { return o })
}
