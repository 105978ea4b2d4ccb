package tensor

import (
	"sync"
	"unsafe"

	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
)

// Lanes is the number of concurrent tasks of a rank on a device: one is copied there and one
// computed, while results of a third are copied back.
const Lanes = 3

// Device runs tasks on a device, in parallel to the workers. It has a copy of the store:
// values that only tensor work needs stay there, with the weights of a version. Gathered
// values are copied there with the task that needs them, and the input of gathers is copied
// back with the task that computes it.
//
// The tasks of an interval are all on one lane, which runs them one after another.
type Device struct {
	Plain
	queues   []*deviceQueue
	frames   map[*model.Frame]*deviceFrame
	finished chan Finished
	running  sync.WaitGroup // running tasks
}

// deviceQueue is an Ops with its own queue on the device.
type deviceQueue struct {
	mu  sync.Mutex
	ops kernels.Ops
}

type deviceFrame struct {
	queue     *deviceQueue
	store     *model.Store // the host's store
	frame     *model.Frame
	loss      task.Loss
	weights   *deviceWeights
	transfers map[stages]model.Cut
}

type deviceWeights struct {
	mat     kernels.Mat
	version int
	valid   bool // the weights are those of version
}

// stages are the stages of a task, and its pass.
type stages struct {
	first *model.Do
	count int
	train bool
}

// NewDevice returns a Device that uses the given Ops, which have separate queues and the same
// memory.
func NewDevice(ops []kernels.Ops) *Device {
	d := &Device{frames: map[*model.Frame]*deviceFrame{}}
	for _, o := range ops {
		d.queues = append(d.queues, &deviceQueue{ops: o})
	}
	return d
}

// Reserve implements Backend.
func (d *Device) Reserve(store *model.Store, frames []*model.Frame, losses []*task.Loss, a *mapped.Arena) {
	type shared struct {
		lane *deviceQueue
		at   unsafe.Pointer
	}
	known := map[shared]*deviceWeights{}
	first := d.queues[0].ops
	far := store.CopyTo(first, a)
	for k, f := range frames {
		l := d.queues[k%len(d.queues)]
		name := shared{l, f.Weights.Address()}
		if known[name] == nil {
			known[name] = &deviceWeights{mat: kernels.NewMat(l.ops, a, f.Weights.Rows, f.Weights.Cols)}
		}
		w := known[name]
		x := losses[k]
		d.frames[f] = &deviceFrame{
			queue: l, store: store, frame: far.CopyFrame(f, l.ops, w.mat), weights: w, transfers: map[stages]model.Cut{},
			loss: task.Loss{Labels: kernels.Place(l.ops, a, x.Labels.Host()), Split: kernels.Place(l.ops, a, x.Split.Host()), Scale: x.Scale, Target: x.Target},
		}
	}
	if len(frames) > 0 { // the copy is complete when other lanes use it
		first.Download(make([]byte, 4), d.frames[frames[0]].frame.Grad.Address())
	}
	d.finished = make(chan Finished, len(frames)) // an interval has one task at a time: a sender never blocks
	a.OnFree(func() {
		for _, f := range frames {
			delete(d.frames, f)
		}
	})
}

// Start implements Backend.
func (d *Device) Start(_ kernels.Ops, t *task.Task) (bool, error) {
	at := d.frames[t.Frame]
	d.running.Add(1)
	go func() {
		defer d.running.Done()
		d.finished <- Finished{t.Name, at.runTask(t)}
	}()
	return false, nil
}

func (w *deviceFrame) runTask(t *task.Task) (err error) {
	w.queue.mu.Lock()
	defer w.queue.mu.Unlock()
	defer mapped.Catch(&err)
	ops, cut := w.queue.ops, w.transferOf(t)
	if v := w.weights; !v.valid || v.version != t.Version {
		kernels.CopyAcross(ops, v.mat, t.Frame.Weights)
		v.version, v.valid = t.Version, true
	}
	t.Frame.Enter(t.Do, t.Pass())
	for _, r := range cut.Inputs {
		kernels.CopyAcross(ops, w.frame.Value(r), t.Frame.Value(r))
	}
	far := *t
	far.Frame, far.Loss = w.frame, &w.loss
	w.loss.Count, w.loss.Found = t.Loss.Count, t.Loss.Found
	far.Run(ops)
	for _, r := range cut.Outputs {
		kernels.CopyAcross(ops, t.Frame.Value(r), w.frame.Value(r))
	}
	for _, p := range cut.Grads {
		kernels.CopyAcross(ops, p.In(t.Frame.Grad), p.In(w.frame.Grad))
	}
	t.Loss.Found = w.loss.Found
	return nil
}

// transferOf returns the values copied to and from the device with a task.
func (w *deviceFrame) transferOf(t *task.Task) model.Cut {
	name := stages{&t.Do[0], len(t.Do), t.Train}
	c, ok := w.transfers[name]
	if !ok {
		c = w.store.Crossing(t.Do, t.Pass())
		w.transfers[name] = c
	}
	return c
}

// Finished implements Backend.
func (d *Device) Finished() <-chan Finished { return d.finished }

// RequestOptions implements Backend.
func (d *Device) RequestOptions() RequestOptions { return RequestOptions{Fused: true} }

// StoresValues implements Backend.
func (d *Device) StoresValues() bool { return true }

// Kernel implements Backend.
func (d *Device) Kernel() string { return d.queues[0].ops.Kernel() }

// Drain implements Backend.
func (d *Device) Drain() { d.running.Wait() }

// Close implements Backend.
func (d *Device) Close() {
	d.Drain()
	for _, l := range d.queues {
		l.ops.Close()
	}
}
