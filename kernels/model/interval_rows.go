package model

import (
	"slices"

	"siafu/kernels"
)

// VisitRows calls visit with the rows [lo, hi) of the matrices that a stage reads or writes, except
// values that are stored by worker.
// Frames may run meanwhile.
func (s *Store) VisitRows(d Do, lo, hi int, visit func(rows kernels.Mat)) {
	n := s.Network
	var list []Value
	switch d.Stage {
	case Draw:
		list = []Value{Input}
	case Loss:
		list = []Value{Output, OutputGrad}
	default:
		flow := n.Layers[d.Layer].Flow(d.Stage)
		list = slices.Concat(flow.Reads, flow.Writes)
		if d.Stage == ApplyBackward && n.skipped[d.Layer] {
			list = append(list, skipGrad)
		}
	}
	features := d.Layer == 0 && (d.Stage == Draw || d.Stage == Emit)
	for _, v := range list {
		if m := s.whole[d.phase()][d.Layer][v]; !m.IsNil() {
			visit(m.Part(lo, hi))
		}
		root, _ := n.root(d.Layer, v)
		features = features || root == ref{0, Input}
	}
	if x := s.input.Features.Dense; features && !x.IsNil() {
		visit(x.Part(lo, hi))
	}
}

// InputIDs returns the dataset ids of own vertices, the counters of dropout.
func (s *Store) InputIDs() kernels.Vector[uint32] { return s.input.IDs }
