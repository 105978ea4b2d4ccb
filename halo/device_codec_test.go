package halo_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"unsafe"

	"siafu/cuda"
	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/ptx"
	"siafu/kernels"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// On a device, rows and gradients equal the host's exchange to the bit: in chunks, with error
// feedback, with rows sent raw, and with codecs without kernels. No call polls for arrivals:
// End waits for all copies.
func TestExchangesElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("the interpreter of kernels takes minutes under the race detector, for which this is short")
	}
	names := []string{"s2", "bf16", "int4+ef"} // the conformance suite tests other codecs
	if hosttest.Big() {
		names = append(names, "none", "int8", "bf16+ef")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			sameRows(t, exchanged(t, name, onStandIn), exchanged(t, name, onTeam))
		})
	}
}

// A communicator that accepts device memory gets rows from the device, and none cross to the
// host. A codec needs rows on the host.
func TestExchangesOfDeviceMemory(t *testing.T) {
	for name, crosses := range map[string]bool{"none": false, "s2": true} {
		var crossed atomic.Int64
		got := exchanged(t, name, func(w world.Comm, team *kernels.Team) (world.Comm, kernels.Ops, func(), error) {
			return taking{w}, apart{team, &crossed}, func() {}, nil
		})
		sameRows(t, got, exchanged(t, name, onTeam))
		if reads := crossed.Load() - 3*3; (reads > 0) != crosses { // the test itself reads thrice on each rank
			t.Errorf("%s: %d reads of rows", name, reads)
		}
	}
}

// taking is a communicator that accepts device memory.
type taking struct{ world.Comm }

func (taking) DeviceMemory(int) bool { return true }

// apart is an Ops whose memory counts as a device's, and counts reads.
type apart struct {
	*kernels.Team
	reads *atomic.Int64
}

func (apart) Remote() bool                          { return true }
func (o apart) Copier(*mapped.Arena) kernels.Copier { return kernels.SyncCopier(o) }
func (apart) Alloc(a *mapped.Arena, bytes int) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(mapped.Make[byte](a, bytes)))
}
func (apart) Upload(dst unsafe.Pointer, src []byte) { copy(unsafe.Slice((*byte)(dst), len(src)), src) }
func (o apart) Download(dst []byte, src unsafe.Pointer) {
	o.reads.Add(1)
	copy(dst, unsafe.Slice((*byte)(src), len(dst)))
}
func (o apart) Clear(dst kernels.Mat) { o.Team.Clear(dst.AsHost()) }
func (o apart) PackRows(dst kernels.Mat, index kernels.Vector[uint32], x, more kernels.Mat) {
	o.Team.PackRows(dst.AsHost(), index.AsHost(), x.AsHost(), more.AsHost())
}
func (o apart) AddRows(dst, more kernels.Mat, index kernels.Vector[uint32], rows kernels.Mat) {
	o.Team.AddRows(dst.AsHost(), more.AsHost(), index.AsHost(), rows.AsHost())
}

func sameRows(t *testing.T, got, want [3][]float32) {
	t.Helper()
	for rank := range want {
		for i, v := range want[rank] {
			if g := got[rank][i]; math.Float32bits(g) != math.Float32bits(v) && (g == g || v == v) {
				t.Fatalf("rank %d: number %d is %v instead of %v", rank, i, g, v)
			}
		}
	}
}

// place makes a rank's Ops and communicator.
type place func(w world.Comm, team *kernels.Team) (c world.Comm, o kernels.Ops, end func(), err error)

func onTeam(w world.Comm, team *kernels.Team) (world.Comm, kernels.Ops, func(), error) {
	return w, team, func() {}, nil
}

func onStandIn(w world.Comm, _ *kernels.Team) (world.Comm, kernels.Ops, func(), error) {
	d := ptx.New(ptx.Settings{})
	o, err := cuda.New(d, cuda.Own)
	return w, o, func() { o.Close(); d.Close() }, err
}

// exchanged returns the rows of each of three ranks after two epochs: ghosts, and own rows
// with added gradients.
func exchanged(t *testing.T, name string, at place) [3][]float32 {
	const n, cols = 900, 301 // two chunks of int8 for each rank
	var all [3][]float32
	err := inproc.Run(3, func(w world.Comm) error {
		team, arena := kernels.NewTeam(1), mapped.NewArena()
		defer team.Close()
		w, ops, end, err := at(w, team)
		if err != nil {
			return err
		}
		defer end()
		defer arena.Free()
		e := halo.NewExchange(w, star(w.Rank(), 3, n), named(t, name), team, ops, arena, cols)
		rng := rand.New(rand.NewPCG(uint64(w.Rank()), 7))
		own, host := kernels.NewMat(ops, arena, n, cols), make([]float32, 2*n*cols)
		for epoch := range 2 {
			key := halo.Key{Seed: 3, Epoch: epoch}
			kernels.Write(ops, own, oddRows(rng, host[:n*cols], cols))
			if err := e.BeginForward(own, key); err != nil {
				return err
			}
			ops.Clear(own) // it may change
			ghosts, err := e.EndForward()
			if err != nil {
				return err
			}
			if epoch > 0 { // the first one does not wait for copies to the device
				kernels.Read(ops, host, ghosts)
				all[w.Rank()] = append(all[w.Rank()], slices.Clone(host)...)
			}
			kernels.Write(ops, e.Ghosts(cols), oddRows(rng, host, cols))
			if err := e.BeginBackward(cols, key); err != nil {
				return err
			}
			if err := e.EndBackward(own); err != nil {
				return err
			}
			kernels.Read(ops, host, own)
			all[w.Rank()] = append(all[w.Rank()], slices.Clone(host[:n*cols])...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// oddRows fills x with rows; a few have numbers that no grid spans.
func oddRows(rng *rand.Rand, x []float32, cols int) []float32 {
	for i := range x {
		x[i] = rng.Float32() - 0.5
	}
	for r := 5; r < len(x)/cols; r += 97 {
		x[r*cols+r%cols] = []float32{float32(math.NaN()), float32(math.Inf(1)), 3e38}[r%3]
	}
	return x
}
