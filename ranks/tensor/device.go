package tensor

import (
	"sync"
	"unsafe"

	"siafu/graph/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
)

// Lanes are how many tasks of a rank are on a device at a time: one is copied there
// and one computed, while results of a third come back.
const Lanes = 3

// Holder is a backend that keeps values of tasks where it computes.
type Holder interface {
	// Hold makes room, which lives as long as a, for the tasks of some frames of a
	// store and their losses. Tasks of no other frame may be started. It is not called
	// while tasks are under way.
	Hold(store *model.Store, frames []*model.Frame, losses []*task.Loss, a *mapped.Arena)
	// Kernel names the arithmetic of tasks.
	Kernel() string
	// Drain waits until no task is under way.
	Drain()
}

// Device does tasks on a device, beside the workers. It has a twin of the store: what
// only tensor work needs stays there, with the weights of a version. What gathers have
// made goes there with the task that needs it, and what they read comes back with the
// task that makes it.
//
// The tasks of an interval are all on one lane, which does one after another.
type Device struct {
	lanes    []*lane
	twins    map[*model.Frame]*twin
	finished chan Finished
	under    sync.WaitGroup // tasks under way
}

// lane is an Ops with a queue of its own on the device.
type lane struct {
	mu  sync.Mutex
	ops kernels.Ops
}

// twin is a frame on the device.
type twin struct {
	lane    *lane
	store   *model.Store // that it is a twin of
	frame   *model.Frame
	loss    task.Loss
	weights *held
	cuts    map[stages]model.Cut
}

// held are weights on a lane.
type held struct {
	mat     kernels.Mat
	version int
	known   bool // they are those of version
}

// stages name what a task does, and in which pass.
type stages struct {
	first *model.Do
	count int
	train bool
}

// NewDevice does tasks with these Ops, which have a queue each and the same memory.
func NewDevice(ops []kernels.Ops) *Device {
	d := &Device{twins: map[*model.Frame]*twin{}}
	for _, o := range ops {
		d.lanes = append(d.lanes, &lane{ops: o})
	}
	return d
}

// Hold implements Holder.
func (d *Device) Hold(store *model.Store, frames []*model.Frame, losses []*task.Loss, a *mapped.Arena) {
	type shared struct {
		lane *lane
		at   unsafe.Pointer
	}
	known := map[shared]*held{}
	first := d.lanes[0].ops
	far := store.Twin(first, a)
	for k, f := range frames {
		l := d.lanes[k%len(d.lanes)]
		name := shared{l, f.Weights.Address()}
		if known[name] == nil {
			known[name] = &held{mat: kernels.NewMat(l.ops, a, f.Weights.Rows, f.Weights.Cols)}
		}
		w := known[name]
		x := losses[k]
		d.twins[f] = &twin{
			lane: l, store: store, frame: far.TwinOf(f, l.ops, w.mat), weights: w, cuts: map[stages]model.Cut{},
			loss: task.Loss{Labels: kernels.Place(l.ops, a, x.Labels.Host()), Split: kernels.Place(l.ops, a, x.Split.Host()), Scale: x.Scale, Aim: x.Aim},
		}
	}
	if len(frames) > 0 { // the twin is there when other lanes use it
		first.Download(make([]byte, 4), d.twins[frames[0]].frame.Grad.Address())
	}
	d.finished = make(chan Finished, len(frames)) // an interval has one task at a time: nobody who ends one waits
	a.OnFree(func() {
		for _, f := range frames {
			delete(d.twins, f)
		}
	})
}

// Start implements Backend.
func (d *Device) Start(_ kernels.Ops, t *task.Task) (bool, error) {
	at := d.twins[t.Frame]
	d.under.Add(1)
	go func() {
		defer d.under.Done()
		d.finished <- Finished{t.Name, at.do(t)}
	}()
	return false, nil
}

// do does a task.
func (w *twin) do(t *task.Task) (err error) {
	w.lane.mu.Lock()
	defer w.lane.mu.Unlock()
	defer mapped.Catch(&err)
	ops, cut := w.lane.ops, w.cut(t)
	if v := w.weights; !v.known || v.version != t.Version {
		kernels.Carry(ops, v.mat, t.Frame.Weights)
		v.version, v.known = t.Version, true
	}
	t.Frame.Enter(t.Do, t.Pass())
	for _, r := range cut.Inputs {
		kernels.Carry(ops, w.frame.Value(r), t.Frame.Value(r))
	}
	far := *t
	far.Frame, far.Loss = w.frame, &w.loss
	w.loss.Count, w.loss.Found = t.Loss.Count, t.Loss.Found
	far.Run(ops)
	for _, r := range cut.Outputs {
		kernels.Carry(ops, t.Frame.Value(r), w.frame.Value(r))
	}
	for _, p := range cut.Grads {
		kernels.Carry(ops, p.In(t.Frame.Grad), p.In(w.frame.Grad))
	}
	t.Loss.Found = w.loss.Found
	return nil
}

// cut is what goes there and back with a task.
func (w *twin) cut(t *task.Task) model.Cut {
	name := stages{&t.Do[0], len(t.Do), t.Train}
	c, ok := w.cuts[name]
	if !ok {
		c = w.store.Crossing(t.Do, t.Pass())
		w.cuts[name] = c
	}
	return c
}

// Finished implements Backend.
func (d *Device) Finished() <-chan Finished { return d.finished }

// Wishes implements Backend.
func (d *Device) Wishes() Wishes { return Wishes{Fused: true} }

// Kernel implements Holder.
func (d *Device) Kernel() string { return d.lanes[0].ops.Kernel() }

// Drain implements Holder.
func (d *Device) Drain() { d.under.Wait() }

// Close implements Backend.
func (d *Device) Close() {
	d.Drain()
	for _, l := range d.lanes {
		l.ops.Close()
	}
}
