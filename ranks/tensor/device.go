package tensor

import (
	"sync"
	"unsafe"

	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
)

// DeviceQueues is the number of queues of a rank on a device. With three queues, the inputs of one
// task are copied to the device, a second task is computed, and the results of a third task are
// copied back at the same time.
const DeviceQueues = 3

// Device runs tasks on a device, in parallel to the workers. It has a copy of the store on the
// device. Values that only tensor work needs stay on the device, with one version of the weights.
// Gathered values are copied to the device with the task that reads them. The input of gathers is
// copied back with the task that computes it.
//
// All tasks of an interval use one queue, which runs them one after another.
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
	transfers map[taskKey]model.Transfers // values copied to and from the device, by kind of task
}

type deviceWeights struct {
	mat     kernels.Mat
	version int
	valid   bool // the weights are those of version
}

// taskKey identifies the list of stages and the pass of a task.
type taskKey struct {
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
		queue   *deviceQueue
		weights unsafe.Pointer
	}
	known := map[shared]*deviceWeights{}
	first := d.queues[0].ops
	onDevice := store.CopyTo(first, a)
	for k, f := range frames {
		l := d.queues[k%len(d.queues)]
		key := shared{l, f.Weights.Address()}
		if known[key] == nil {
			known[key] = &deviceWeights{mat: kernels.NewMat(l.ops, a, f.Weights.Rows, f.Weights.Cols)}
		}
		w := known[key]
		x := losses[k]
		d.frames[f] = &deviceFrame{
			queue: l, store: store, frame: onDevice.CopyFrame(f, l.ops, w.mat), weights: w, transfers: map[taskKey]model.Transfers{},
			loss: task.Loss{Labels: kernels.Place(l.ops, a, x.Labels.Host()), Split: kernels.Place(l.ops, a, x.Split.Host()),
				Scale: x.Scale, Target: x.Target},
		}
	}
	// Wait for the copy before other queues use it: a download waits for all earlier work of its
	// queue.
	if len(frames) > 0 {
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
	ops, transfers := w.queue.ops, w.transfersOf(t)
	if v := w.weights; !v.valid || v.version != t.Version {
		kernels.CopyAcross(ops, v.mat, t.Frame.Weights)
		v.version, v.valid = t.Version, true
	}
	t.Frame.Enter(t.Do, t.Pass())
	for _, r := range transfers.Inputs {
		kernels.CopyAcross(ops, w.frame.Value(r), t.Frame.Value(r))
	}
	onDevice := *t
	onDevice.Frame, onDevice.Loss = w.frame, &w.loss
	w.loss.Count, w.loss.Found = t.Loss.Count, t.Loss.Found
	onDevice.Run(ops)
	for _, r := range transfers.Outputs {
		kernels.CopyAcross(ops, t.Frame.Value(r), w.frame.Value(r))
	}
	for _, p := range transfers.Grads {
		kernels.CopyAcross(ops, p.In(t.Frame.Grad), p.In(w.frame.Grad))
	}
	t.Loss.Found = w.loss.Found
	return nil
}

// transfersOf returns the values copied to and from the device with a task.
func (w *deviceFrame) transfersOf(t *task.Task) model.Transfers {
	key := taskKey{&t.Do[0], len(t.Do), t.Train}
	c, ok := w.transfers[key]
	if !ok {
		c = w.store.DeviceTransfers(t.Do, t.Pass())
		w.transfers[key] = c
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
