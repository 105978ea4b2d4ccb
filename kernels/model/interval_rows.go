package model

import (
	"slices"

	"siafu/kernels"
)

// VisitRows calls visit with the rows [lo, hi) of the matrices that a stage reads or writes, and whether it
// may write them, except values that are stored by worker.
// Frames may run meanwhile.
func (s *Store) VisitRows(d Do, lo, hi int, visit func(rows kernels.Mat, write bool)) {
	n := s.Network
	var reads, writes []Value
	switch d.Stage {
	case Draw:
		writes = []Value{Input}
	case Loss:
		reads, writes = []Value{Output}, []Value{OutputGrad}
	default:
		flow := n.Layers[d.Layer].Flow(d.Stage)
		reads, writes = flow.Reads, flow.Writes
		if d.Stage == ApplyBackward && n.skipped[d.Layer] {
			reads, writes = append(slices.Clone(reads), skipGrad), append(slices.Clone(writes), OutputGrad)
		}
	}
	features := d.Layer == 0 && (d.Stage == Draw || d.Stage == Emit)
	for k, v := range slices.Concat(writes, reads) {
		if m := s.whole[d.phase()][d.Layer][v]; !m.IsNil() {
			visit(m.Part(lo, hi), k < len(writes))
		}
		root, _ := n.root(d.Layer, v)
		features = features || root == ref{0, Input}
	}
	if x := s.input.Features.Dense; features && !x.IsNil() {
		visit(x.Part(lo, hi), false)
	}
}

// InputIDs returns the dataset ids of own vertices, the counters of dropout.
func (s *Store) InputIDs() kernels.Vector[uint32] { return s.input.IDs }
