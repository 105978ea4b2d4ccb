package cuda

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"siafu/cuda/device"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// failing is a device that accepts all calls and does nothing, but fails with these errors.
type failing struct {
	device.Device
	device.Stream
	device.Module
	load, alloc, launch, pin error
	used                     int // bytes that are not freed
	sizes                    map[device.Ptr]int
}

func (d *failing) Properties() device.Properties              { return device.Properties{Name: "a test's"} }
func (d *failing) NewStream() (device.Stream, error)          { return d, nil }
func (d *failing) Load(string, string) (device.Module, error) { return d, d.load }
func (d *failing) Function(name string) (device.Function, error) {
	return entry(name), nil
}
func (d *failing) Alloc(bytes int) (device.Ptr, error) {
	if d.alloc != nil {
		return 0, d.alloc
	}
	if d.sizes == nil {
		d.sizes = map[device.Ptr]int{}
	}
	p := device.Ptr(1<<50 + len(d.sizes)<<32)
	d.sizes[p], d.used = bytes, d.used+bytes
	return p, nil
}
func (d *failing) Free(p device.Ptr) error                                   { d.used -= d.sizes[p]; return nil }
func (d *failing) Set(device.Ptr, byte, int) error                           { return nil }
func (d *failing) CopyIn(device.Ptr, []byte) error                           { return nil }
func (d *failing) CopyOut([]byte, device.Ptr) error                          { return nil }
func (d *failing) BeginIn(device.Ptr, []byte) error                          { return nil }
func (d *failing) BeginOut([]byte, device.Ptr) error                         { return nil }
func (d *failing) NewEvent() (device.Event, error)                           { return d, nil }
func (d *failing) Record(device.Event) error                                 { return nil }
func (d *failing) Wait(device.Event) error                                   { return nil }
func (d *failing) Done() (bool, error)                                       { return true, nil }
func (d *failing) Since(device.Event) (float64, error)                       { return 0, nil }
func (d *failing) Pin([]byte) error                                          { return d.pin }
func (d *failing) Unpin([]byte) error                                        { return nil }
func (d *failing) Launch(device.Function, device.Launch, *device.Args) error { return d.launch }
func (d *failing) Synchronize() error                                        { return nil }
func (d *failing) Unload() error                                             { return nil }
func (d *failing) Close() error                                              { return nil }

type entry string

func (e entry) Name() string { return string(e) }

// attempt returns how some work ends.
func attempt(work func()) (err error) {
	defer mapped.Catch(&err)
	work()
	return nil
}

// A failed device ends the current piece of work with its first error, and every later one on
// any Ops of the rank.
func TestDeviceFails(t *testing.T) {
	d, arena := &failing{}, mapped.NewArena()
	o, err := New(d, Own)
	if err != nil {
		t.Fatal(err)
	}
	m := kernels.NewMat(o, arena, 3, 4)
	f := o.Fork()
	if err := attempt(func() { f.Add(m, m) }); err != nil {
		t.Fatal(err)
	}
	d.launch = errors.New("an illegal address")
	for name, work := range map[string]func(){
		"a kernel":       func() { f.Add(m, m) },
		"an upload":      func() { kernels.Write(o, m, make([]float32, 12)) },
		"a Fork's clear": func() { o.Fork().Clear(m) },
	} {
		err := attempt(func() { f.Add(m, m) })
		d.launch = errors.New("a later one")
		if again := attempt(work); err == nil || again == nil || again.Error() != err.Error() ||
			fault.ExitCode(again) != 1 || !strings.Contains(again.Error(), "an illegal address") {
			t.Errorf("%s: %v, then %v", name, err, again)
		}
	}
	o.Close()
	f.Close()
	arena.Free()
}

// Too little device memory is an error of the configuration, also at the start.
func TestDeviceHasNoRoom(t *testing.T) {
	short := fmt.Errorf("of 3 GB: %w", device.ErrMemory)
	d := &failing{alloc: short}
	o, err := New(d, Own)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	arena := mapped.NewArena()
	defer arena.Free()
	if err := attempt(func() { kernels.NewMat(o, arena, 3, 4) }); fault.ExitCode(err) != 78 || !errors.Is(err, device.ErrMemory) {
		t.Errorf("%v", err)
	}
	if _, err := New(&failing{load: errors.New("no such instruction")}, Own); fault.ExitCode(err) != 1 ||
		!strings.Contains(err.Error(), "no such instruction") {
		t.Errorf("%v", err)
	}
}

// An Ops frees its device resources: its arenas' memory when they are freed, a plan when its
// matrix is replaced, the rest when the last Ops is closed.
func TestOpsGivesBack(t *testing.T) {
	d, arena := &failing{}, mapped.NewArena()
	o, err := New(d, Own)
	if err != nil {
		t.Fatal(err)
	}
	f := o.Fork()
	begin, end := kernels.Place(o, arena, make([]int64, 9)), kernels.Place(o, arena, make([]int64, 9))
	x := kernels.NewMat(o, arena, 9, 2)
	if begin.Address() == end.Address() {
		t.Fatal("one address twice")
	}
	f.SpMM(kernels.NewMat(o, arena, 9, 2), kernels.Edges{Begin: begin, End: end}, x, false)
	if len(o.plans) != 1 {
		t.Fatalf("%d plans", len(o.plans))
	}
	kernels.Write(o, x, make([]float32, 18))
	if len(o.plans) != 1 {
		t.Error("a plan is forgotten without need")
	}
	o.Upload(end.Part(8, 9).Address(), make([]byte, 8))
	if len(o.plans) != 0 {
		t.Error("the plan of other bounds is kept")
	}
	f.SoftmaxCrossEntropy(kernels.Mat{}, x, kernels.Place(o, arena, make([]int32, 9)), kernels.Place(o, arena, make([]uint8, 9)), 0, 1)
	o.Close()
	o.Close()
	f.Close()
	arena.Free()
	if d.used != 0 {
		t.Errorf("%d bytes are not given back", d.used)
	}
}

// A call allocates nothing once its workspace and its matrix's plan exist.
func TestCallsDoNotAllocate(t *testing.T) {
	arena := mapped.NewArena()
	o, err := New(&failing{}, Own)
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Free()
	defer o.Close()
	const n, heads, width = 9, 2, 3
	mat := func(cols int) kernels.Mat { return kernels.NewMat(o, arena, n, cols) }
	bounds := kernels.Place(o, arena, make([]int64, n))
	e := kernels.Edges{Begin: bounds, End: bounds}
	a := kernels.Attention{Heads: heads, Width: width, Drop: &kernels.Dropout{P: 0.5}}
	square, bias, half := mat(n), mat(n).Part(0, 1), kernels.NewHalf(o, arena, n, n, kernels.HalfSlack)
	emitted, out, stats, each := kernels.Emitted{X: mat(a.Emitted())}, mat(a.Columns()), mat(2*heads), mat(heads)
	back := kernels.Attended{R: each, LSE: each, Grad: out, Dots: each}
	adam, err := kernels.NewOptimizer(kernels.OptimizerConfig{Name: "adam", LR: 1})
	if err != nil {
		t.Fatal(err)
	}
	state := []kernels.Mat{square, square}
	labels, split := kernels.Place(o, arena, make([]int32, n)), kernels.Place(o, arena, make([]uint8, n))
	c, bytes := o.Copier(arena), make([]byte, 4)
	coded := kernels.NewVector[uint8](o, arena, n*n+4*n)
	for name, call := range map[string]func(){
		"EncodeRows": func() { o.EncodeRows(coded, 8, kernels.Outgoing{X: square, Raw: square}) },
		"DecodeRows": func() { o.DecodeRows(kernels.Incoming{X: square, Len: n}, 8, coded) },
		"Copier": func() {
			c.Mark()
			c.Wait(c.StartDownload(bytes, square.Address()))
			c.StartUpload(square.Address(), bytes)
			c.AwaitUploads()
			c.Settle()
		},
		"MatMul":              func() { o.MatMul(square, half, square, false) },
		"MatMulTransA":        func() { o.MatMulTransA(square, square, square, true) },
		"dense":               func() { o.MatMulBiasReLUDropout(square, half, square, bias, true, a.Drop) },
		"BiasReLUDropoutGrad": func() { o.BiasReLUDropoutGrad(square, bias, square, square, true, a.Drop) },
		"BiasELUDropoutGrad":  func() { o.BiasELUDropoutGrad(square, bias, square, square, a.Drop) },
		"SpMM":                func() { o.SpMM(square, e, square, false) },
		"SpMM of halves":      func() { o.SpMM(square, e, half, false) },
		"AttentionGather":     func() { o.AttentionGather(a, out, kernels.Mat{}, stats, e, emitted, each, false) },
		"AttentionGradDst":    func() { o.AttentionGradDst(a, each, kernels.Mat{}, e, emitted, back, false) },
		"AttentionGradSrc":    func() { o.AttentionGradSrc(a, emitted.X, e, 0, n, emitted.X, back) },
		"SoftmaxCrossEntropy": func() { o.SoftmaxCrossEntropy(kernels.Mat{}, square, labels, split, 0, 1) },
		"Step":                func() { o.Step(adam, 1, square, square, state, true) },
	} {
		call()
		if got := testing.AllocsPerRun(10, call); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}
