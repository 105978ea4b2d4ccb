package model

import (
	"slices"

	"siafu/internal/mapped"
	"siafu/kernels"
)

// Ref names a value of a layer, in the forward or the backward pass.
type Ref struct {
	Layer int
	Value Value
	Back  bool
}

// at returns a value in the phase of d.
func (r ref) at(d Do) Ref { return Ref{r.layer, r.value, d.phase() == backward} }

// has reports whether a list names a value in either phase.
func has(list []Ref, r ref) bool {
	return slices.ContainsFunc(list, func(o Ref) bool { return o.Layer == r.layer && o.Value == r.value })
}

// Transfers lists the inputs and outputs of a list of stages, for a receiver without any of the
// network's values.
type Transfers struct {
	Inputs, Outputs []Ref
	Features        bool // the features of the vertices are needed
	Grads           []Param
}

// Transfers returns the inputs and outputs of a list of stages in a pass. The stages before run
// first, to recompute values only for the list. An evaluation outputs its logits, too.
func (n *Network) Transfers(before, list []Do, p Pass) Transfers {
	var c Transfers
	given := !n.Sparse && !n.masks(p)
	// If the features are given, the input of the first layer is not stored: it is the features.
	stored := func(r ref) bool { return !given || r != ref{0, Input} }
	var made []ref
	for k, d := range slices.Concat(before, list) {
		e := n.event(d)
		if d.Stage == Loss && !p.Train {
			e.writes = nil
		}
		for _, r := range e.reads {
			if stored(r) && !slices.Contains(made, r) && !has(c.Inputs, r) {
				c.Inputs = append(c.Inputs, r.at(d))
			}
		}
		made = append(made, e.writes...)
		c.Features = c.Features || n.reads(d, given)
		if k < len(before) {
			continue
		}
		for _, r := range e.writes {
			if stored(r) && !has(c.Outputs, r) && (n.isRead(r, list) || !p.Train && r == n.logits()) {
				c.Outputs = append(c.Outputs, r.at(d))
			}
		}
		if d.Stage < Stages && d.Stage != Draw && d.Stage != Loss {
			c.Grads = append(c.Grads, n.Layers[d.Layer].Flow(d.Stage).Grads...)
		}
	}
	return c
}

// logits returns the root of the network's output.
func (n *Network) logits() ref {
	r, _ := n.root(len(n.Layers)-1, Output)
	return r
}

// Has reports whether an epoch has such a stage, or can recompute it.
func (n *Network) Has(d Do) bool {
	return (!d.Again || !d.Stage.Backward()) && slices.ContainsFunc(n.epoch, func(e event) bool {
		return e.Layer == d.Layer && e.Stage == d.Stage && e.Stage < Stages
	})
}

// event returns a stage with the values that it reads and writes, and the first layer's cached
// values that it reads.
func (n *Network) event(d Do) event {
	e := n.epoch[slices.IndexFunc(n.epoch, func(e event) bool { return e.Layer == d.Layer && e.Stage == d.Stage })]
	if d.Stage == ApplyBackward { // without graph work
		reads, writes := n.gradReaders(d.Layer)
		e.reads, e.writes = e.reads[:len(e.reads)-len(reads)], e.writes[:len(e.writes)-len(writes)]
	}
	if n.numCachedPowers(d.Layer) == 0 || d.Stage >= Stages {
		return e
	}
	e.reads = slices.Clone(e.reads)
	for _, v := range n.Layers[0].Flow(d.Stage).Reads {
		if r := (ref{0, v}); n.keeps(r) {
			e.reads = append(e.reads, r)
		}
	}
	return e
}

// reads reports whether a stage reads the features themselves. given: the first layer's input
// is the features.
func (n *Network) reads(d Do, given bool) bool {
	if d.Stage == Draw {
		return true
	}
	if d.Layer > 0 || d.Stage == Loss {
		return false
	}
	return slices.ContainsFunc(n.Layers[0].Flow(d.Stage).Reads, func(v Value) bool {
		r, ok := n.root(0, v)
		return r == ref{0, Input} && (!ok || n.Sparse || given)
	})
}

// isRead reports whether stages or gathers outside the list read a value.
func (n *Network) isRead(r ref, list []Do) bool {
	return slices.ContainsFunc(n.epoch, func(e event) bool {
		return !slices.Contains(list, e.Do) && (slices.Contains(e.reads, r) || slices.Contains(e.shared, r))
	})
}

// RecomputeStages returns the stages that recompute inputs of a list of stages from values that are still
// stored. These inputs need not be sent.
func (s *Store) RecomputeStages(list []Do) (before []Do) {
	inputs := s.Network.Transfers(nil, list, Pass{Train: true}).Inputs
	for _, e := range s.plan.events { // in the order of a pass, so that one may depend on another
		again := Do{Layer: e.Layer, Stage: e.Stage, Again: true}
		made := slices.ContainsFunc(inputs, func(r Ref) bool { return s.recomputes(e, ref{r.Layer, r.Value}, list) })
		if made && !slices.Contains(list, again) {
			before = append(before, again)
		}
	}
	return before
}

// recomputes reports whether the stage of e can recompute a value before a list of stages:
// only e writes it, and e's inputs are still stored.
func (s *Store) recomputes(e event, r ref, list []Do) bool {
	if s.plan.memory == Forward || s.plan.memory == Recompute || !slices.Contains(e.writes, r) ||
		s.plan.know().depth(e, map[ref]int{}) == 0 || !list[0].Stage.Backward() && !list[0].Again {
		return false
	}
	at := slices.IndexFunc(s.plan.events, func(o event) bool { return o.Do == list[len(list)-1] })
	return !slices.ContainsFunc(e.reads, func(in ref) bool {
		place, ok := s.plan.find(backward, in.layer, in.value)
		return !ok || place.to < at && s.plan.memory != Separate
	})
}

// ByRow reports whether a stage works row by row (Flow), so that it can run on some rows
// before the others arrive.
func (n *Network) ByRow(d Do) bool {
	switch d.Stage {
	case Draw:
		return true
	case Loss:
		return false
	}
	if _, sums := n.Layers[d.Layer].(Summing); sums {
		return false
	}
	return len(n.Layers[d.Layer].Flow(d.Stage).Grads) == 0
}

// Width returns the number of columns of a value of a Transfers.
func (n *Network) Width(r Ref) int {
	if n.keeps(ref{r.Layer, r.Value}) {
		return n.Spec.Dims[0]
	}
	return n.width(ref{r.Layer, r.Value})
}

// Alone returns a store of the given rows with only the values of some stages, for the
// receiver of a task, which also brings the vertices of frames (On). Memory comes from a.
// half: the cached input is bfloat16.
func (n *Network) Alone(list []Do, rows int, half bool, ops kernels.Ops, a *mapped.Arena) *Store {
	s := &Store{Network: n, Rows: rows, ops: ops, arena: a, plan: &plan{net: n, memory: Separate, index: map[spanKey]int{}}}
	shared := map[ref]kernels.Mat{}
	for _, d := range list {
		e := n.event(d)
		for _, r := range slices.Concat(e.reads, e.writes) {
			switch width := n.Width(Ref{Layer: r.layer, Value: r.value}); {
			case !shared[r].IsNil():
			case half && n.keeps(r):
				shared[r] = kernels.NewHalf(ops, a, rows, width, 0)
			default:
				shared[r] = kernels.NewMat(ops, a, rows, width)
			}
		}
	}
	for at := range phases {
		s.whole[at] = make([][]kernels.Mat, len(n.Layers))
		for l := range n.Layers {
			s.whole[at][l] = make([]kernels.Mat, n.values(l))
			for v := range n.values(l) {
				r, _ := n.root(l, v)
				s.whole[at][l][v] = shared[r]
			}
		}
	}
	return s
}

// On returns the frame of an Alone store for a pass of the vertices in, from lo on. Weights
// are as for Frame.
func (s *Store) On(in Vertices, lo int, p Pass, weights kernels.Mat) *Frame {
	f := s.frame(in, lo, s.ops, weights)
	if s.Network.masks(p) {
		f.enter(f.drawn[forward], forward)
	}
	return f
}

// Value returns the frame's rows of a value.
func (f *Frame) Value(r Ref) kernels.Mat {
	if r.Back {
		return f.own[backward][r.Layer][r.Value]
	}
	return f.own[forward][r.Layer][r.Value]
}

// Vertices returns the vertices of the frame.
func (f *Frame) Vertices() Vertices { return f.input.Vertices }
