package model

import (
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Rehearsal is a network on rows without a graph: layers run as in training, but gathered rows
// are ones. It measures the tensor work of an epoch.
type Rehearsal struct {
	*Frame
	store  *Store
	ops    kernels.Ops
	epochs int
}

// NewRehearsal makes the network with memory of a. Its values have the lifetime Separate.
func NewRehearsal(s Spec, in Vertices, ops kernels.Ops, a *mapped.Arena) *Rehearsal {
	r := &Rehearsal{store: NewStore(New(s, in.Features.Sparse != nil), in, Separate, ops, a), ops: ops}
	if s.CacheInput {
		for _, x := range r.store.CacheInput(false, a) {
			kernels.Write(ops, x, ones(x.Rows*x.Cols))
		}
	}
	r.Frame = r.store.Frame(0, in.Features.Rows, ops, kernels.Mat{})
	for l := range s.Layers() {
		for _, x := range []kernels.Mat{r.store.Forward(l, Gathered), r.store.Backward(l, EmittedGrad), r.store.Backward(l, ScoresGrad),
			r.store.Backward(l, AlongGrad)} {
			if !x.IsNil() {
				kernels.Write(ops, x, ones(x.Rows*x.Cols))
			}
		}
	}
	return r
}

func ones(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 1
	}
	return x
}

// Logits returns the logits of the last epoch, and LogitsGrad the destination of their
// gradient.
func (r *Rehearsal) Logits() kernels.Mat { return r.store.Forward(r.last(), Output) }
func (r *Rehearsal) LogitsGrad() kernels.Mat {
	return r.store.Backward(r.last(), OutputGrad)
}

func (r *Rehearsal) last() int { return len(r.Network.Layers) - 1 }

// Epoch runs an epoch's tensor work; loss computes the loss.
func (r *Rehearsal) Epoch(loss func()) {
	r.epochs++
	p := Pass{Epoch: r.epochs, Train: true}
	for _, e := range r.store.plan.events {
		switch {
		case e.Stage == Loss:
			loss()
		case e.Stage < Stages:
			r.Run(e.Do, p, r.ops)
		}
	}
}
