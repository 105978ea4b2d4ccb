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
// and finds wrong accesses, races, and memory that is read before it is written. Two
// devices take turns, of which one runs blocks and warps backwards: the suite demands
// the same bits of all calls of a case. It is the short suite; SIAFU_BIG=1 asks for all
// shapes, which take minutes.
func TestOps(t *testing.T) {
	if os.Getenv("SIAFU_BIG") != "1" {
		kerneltest.Brief()
	}
	var all [2]*cuda.Ops
	for i := range all {
		d := ptx.New(ptx.Settings{Backwards: i == 1})
		defer d.Close()
		o, err := cuda.New(d)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		all[i] = o
	}
	calls := 0
	kerneltest.Ops(t, func(*kernels.Team) kernels.Ops {
		calls++
		return all[calls%len(all)]
	})
}
