package cuda_test

import (
	"bytes"
	"slices"
	"testing"

	"siafu/cuda"
	"siafu/internal/mapped"
	"siafu/internal/testkit/ptx"
	"siafu/kernels"
)

// copier is embedded beside an Ops, which has a method Copier.
type copier interface{ kernels.Copier }

// crossingRig is an Ops on a stand-in device, whose streams run only when awaited, with a
// copier, host memory and device memory.
type crossingRig struct {
	*cuda.Ops
	copier
	host []byte
	x, y kernels.Mat
	said []string
}

func newPier(t *testing.T, s ptx.Settings) *crossingRig {
	d, arena := ptx.New(s), mapped.NewArena()
	o, err := cuda.New(d, cuda.Own)
	if err != nil {
		t.Fatal(err)
	}
	p := &crossingRig{Ops: o, host: mapped.MakeApart(arena, 4*8)}
	o.Tell(func(line string) { p.said = append(p.said, line) })
	p.copier = o.Copier(arena)
	p.x, p.y = kernels.NewMat(o, arena, 2, 4), kernels.NewMat(o, arena, 2, 4)
	p.Pin(p.host)
	t.Cleanup(func() {
		arena.Free()
		o.Close()
		d.Close()
	})
	return p
}

// value returns eight floats v as bytes.
func value(v float32) []byte { return mapped.Bytes(slices.Repeat([]float32{v}, 8)) }

// A copy and a kernel that is called after its start do not wait for each other. The copy sees
// earlier calls.
func TestCopiesGoBesideKernels(t *testing.T) {
	p := newPier(t, ptx.Settings{})
	p.Upload(p.x.Address(), value(3))
	p.Add(p.x, p.x)
	p.Mark()
	out := p.StartDownload(p.host, p.x.Address())
	p.Add(p.y, p.x) // concurrent with the copy
	got := make([]float32, 8)
	kernels.Read(p, got, p.y)
	if !bytes.Equal(mapped.Bytes(got), value(6)) {
		t.Fatalf("%v", got)
	}
	if bytes.Equal(p.host, value(6)) {
		t.Fatal("the kernel has waited for the copy")
	}
	p.Clear(p.y) // a kernel's work that the copy does not wait for
	p.Wait(out)
	if !bytes.Equal(p.host, value(6)) {
		t.Fatalf("%v", p.host)
	}
}

// A copy in waits for calls before Mark but not for later ones, and calls after Land see its
// result.
func TestCopiesLand(t *testing.T) {
	p := newPier(t, ptx.Settings{})
	copy(p.host, value(5))
	p.Add(p.y, p.x) // reads zeros
	p.Mark()
	p.StartUpload(p.x.Address(), p.host)
	p.Add(p.y, p.y)
	p.AwaitUploads()
	p.Add(p.y, p.x)
	got := make([]float32, 8)
	kernels.Read(p, got, p.y)
	if !bytes.Equal(mapped.Bytes(got), value(5)) {
		t.Errorf("%v", got)
	}
	p.Settle()
	copy(p.host, value(9)) // the stand-in checks that it was free
	p.Mark()
	p.StartUpload(p.x.Address(), p.host)
	p.Settle()
}

// Memory that the system does not page-lock is still copied, with one warning.
func TestPageable(t *testing.T) {
	p := newPier(t, ptx.Settings{Pageable: true})
	p.Pin(p.host)
	copy(p.host, value(5))
	p.Mark()
	p.StartUpload(p.x.Address(), p.host)
	p.AwaitUploads()
	got := make([]float32, 8)
	kernels.Read(p, got, p.x)
	if !bytes.Equal(mapped.Bytes(got), value(5)) || len(p.said) != 1 {
		t.Errorf("%v, %q", got, p.said)
	}
}
