package engine

import (
	"time"

	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
	"siafu/ranks/config"
	"siafu/ranks/schedule"
	"siafu/ranks/tensor"
)

// Messages counts the messages of the tensor tasks of one interval in a pass, if they run
// elsewhere.
type Messages struct {
	Tasks    int64
	To, From int64           // bytes of tasks without non-zeros of sparse features, and of results
	NonZeros int64           // tasks that carry the non-zeros
	Work     []time.Duration // of each task, on one processor of this machine
}

// Add returns the sum of m and o.
func (m Messages) Add(o Messages) Messages {
	return Messages{m.Tasks + o.Tasks, m.To + o.To, m.From + o.From, m.NonZeros + o.NonZeros,
		append(append([]time.Duration{}, m.Work...), o.Work...)}
}

// EpochMessages are the messages of each pass of a synchronous epoch.
type EpochMessages struct {
	Epoch      Messages // forward and backward pass as one
	Forward    Messages // the forward pass with a loss, in training
	Backward   Messages // and the backward pass after it
	Evaluation Messages // a separate forward pass with a loss
}

// MeasureMessages measures the messages of an interval of n vertices. It builds each task once
// from zeros, and runs it here. It needs memory for one interval.
func MeasureMessages(c config.Config, net model.Spec, sparse bool, w tensor.RequestOptions, n int,
	ops kernels.Ops) (p EpochMessages, err error) {
	a := mapped.NewArena()
	defer a.Free()
	defer mapped.Catch(&err)
	c.Intervals = 1
	head := shard.Shard{Parts: 1, FeatureDim: net.Dims[0], TrainTotal: 1}
	e := &Engine{
		Rank: Rank{
			Problem: Problem{Config: c, Shard: shard.Sketch(head, shard.Counts{Vertices: int64(n)}, sparse, a), Network: net},
			Comms:   Comms{Peers: absentRanks{size: 1}},
			Machine: Machine{Arena: a, Tensor: &measuringBackend{options: w}},
		},
		workers: &workers{teams: []kernels.Ops{ops}},
	}
	store := e.store(e.network(), syncMemory(c, e.Peers.Size()), a)
	if net.CacheInput {
		store.CacheInput(c.Features == "bf16", a)
	}
	s := e.lockstep(store, e.newIntervals(store, kernels.NewMat(ops, a, net.NumWeights(), 1), a))
	s.endsInLoss = true
	newRoute := &route{}
	s.build(newRoute, false)
	for _, pass := range []struct {
		to    *Messages
		walk  *walk
		train bool
	}{{&p.Epoch, newRoute.epochWalk, true}, {&p.Forward, newRoute.forwardWalk, true}, {&p.Backward, newRoute.backwardWalk, true},
		{&p.Evaluation, newRoute.forwardWalk, false}} {
		r := &measuringBackend{options: w}
		if err := s.runTasks(r, pass.walk.tasks, model.Pass{Epoch: 1, Train: pass.train}); err != nil {
			return EpochMessages{}, err
		}
		*pass.to = r.seen
	}
	return p, nil
}

// runTasks starts each tensor task of a walk on the first interval.
func (s *lockstep) runTasks(r *measuringBackend, tasks tensorWorkTable, p model.Pass) error {
	for l := range tasks {
		for stage, work := range tasks[l] {
			if len(work.do) == 0 {
				continue
			}
			t := schedule.Task{Layer: l, Stage: schedule.Stage(stage)}
			if _, err := s.intervals[0].start(r, t, 0, p.Epoch, p, work); err != nil {
				return err
			}
		}
	}
	return nil
}

// measuringBackend is a backend that runs a task as the receiver of its message would, and
// records its sizes and time.
type measuringBackend struct {
	tensor.Plain
	tensor.CPU
	options tensor.RequestOptions
	seen    Messages
}

// RequestOptions implements tensor.Backend.
func (r *measuringBackend) RequestOptions() tensor.RequestOptions { return r.options }

// Start implements tensor.Backend.
func (r *measuringBackend) Start(own kernels.Ops, t *task.Task) (bool, error) {
	message := t.Encode(nil, own)
	net := t.Frame.Network
	var result []byte
	least := time.Duration(1 << 62)
	for range 2 { // the first one touches the memory
		began := time.Now()
		var err error
		if result, err = task.Work(net, message, nil, own); err != nil {
			return false, err
		}
		least = min(least, time.Since(began))
	}
	m := Messages{Tasks: 1, To: int64(len(message)), From: int64(len(result)), Work: []time.Duration{least}}
	if net.Sparse && net.Transfers(t.Recompute, t.Do, t.Pass()).Features {
		m.NonZeros = 1
	}
	r.seen = r.seen.Add(m)
	return true, nil
}
