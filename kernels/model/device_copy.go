package model

import (
	"slices"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// CopyTo returns a twin store of the same network and vertices in the memory of ops, with the
// same lifetimes of values. Tensor work uses the twin, graph work uses s, which must be in
// this process's memory; DeviceTransfers lists the copies between them. Memory comes from a.
// Call CopyTo after s has the cached input of the first layer.
func (s *Store) CopyTo(ops kernels.Ops, a *mapped.Arena) *Store {
	from, n := s.input.Features, s.Network
	f := graph.Features{Rows: from.Rows, Dim: from.Dim}
	switch {
	case !slices.ContainsFunc(n.epoch, func(e event) bool { return e.Stage < Stages && n.reads(e.Do, !n.Sparse) }):
	case from.Sparse != nil:
		f.Sparse = &from.Sparse.Source
	case from.Dense.Half():
		f.Half = from.Dense.HostHalf(0)
	case !from.Dense.IsNil():
		if f.Dense = from.Dense.Host(); f.Dense == nil { // of no vertices
			f.Dense = []float32{}
		}
	}
	t := newStore(n, Place(ops, a, f, s.input.IDs.Host(), nil), s.plan, ops, a)
	if n.Spec.CacheInput {
		for k, to := range t.CacheInput(s.Forward(0, Gathered).Half(), a) {
			kernels.CopyAcross(ops, to, s.Forward(0, CachedPower(k)))
		}
	}
	return t
}

// CopyFrame returns the frame on t of f's vertices, with shared weights. t is the twin of f's
// store.
func (t *Store) CopyFrame(f *Frame, ops kernels.Ops, weights kernels.Mat) *Frame {
	return t.Frame(f.lo, f.lo+f.Rows(), ops, weights)
}

// DeviceTransfers returns the values to copy between a store and its twin for a list of stages.
// Inputs are results of gathers that no stage has read yet. Outputs are values that gathers
// read and, in Forward, other results of a pass. Grads are all gradients of the list.
func (s *Store) DeviceTransfers(list []Do, p Pass) (c Transfers) {
	n := s.Network
	given := !n.Sparse && !n.masks(p) // the first layer's input is the features
	for _, d := range list {
		e := n.event(d)
		for _, r := range e.reads {
			if !d.Again && n.fresh(r, d) && !has(c.Inputs, r) {
				c.Inputs = append(c.Inputs, r.at(d))
			}
		}
		if d.Stage == Loss && !p.Train {
			continue
		}
		for _, r := range e.writes {
			if given && r == (ref{0, Input}) || slices.Contains(c.Outputs, r.at(d)) {
				continue
			}
			if n.gathered(r, d.Again) || s.plan.memory == Forward && n.asked(r) {
				c.Outputs = append(c.Outputs, r.at(d))
			}
		}
		if d.Stage != Draw && d.Stage != Loss {
			c.Grads = append(c.Grads, n.Layers[d.Layer].Flow(d.Stage).Grads...)
		}
	}
	return c
}

// fresh reports whether a gather has written a value after the last stage that read it before
// d.
func (n *Network) fresh(r ref, d Do) bool {
	at := slices.IndexFunc(n.epoch, func(e event) bool { return e.Do == d })
	for _, e := range slices.Backward(n.epoch[:at]) {
		_, written := n.gradReaders(e.Layer)
		if e.Stage >= Stages && slices.Contains(e.writes, r) || e.Stage == ApplyBackward && slices.Contains(written, r) {
			return true
		}
		if e.Stage < Stages && (slices.Contains(e.reads, r) || slices.Contains(e.writes, r)) {
			return false
		}
	}
	return false
}

// gathered reports whether graph work reads a value; with back, in the backward pass.
func (n *Network) gathered(r ref, back bool) bool {
	return slices.ContainsFunc(n.epoch, func(e event) bool {
		switch {
		case e.Stage == ApplyBackward:
			read, _ := n.gradReaders(e.Layer)
			return slices.Contains(read, r)
		case e.Stage == gatherBackward || e.Stage == gather && !back:
			return slices.Contains(e.reads, r) || slices.Contains(e.shared, r)
		}
		return false
	})
}

// asked reports whether a value is a prediction or an embedding.
func (n *Network) asked(r ref) bool {
	in, _ := n.root(n.Spec.Top(), Input)
	return r == n.logits() || r == in
}
