package model

import (
	"sync"

	"siafu/internal/mapped"
	"siafu/kernels"
)

// slots are the memory of values that an interval uses only between two gathers (InChain). A slot has
// the rows of one interval. An interval has a slot from the first of these tasks to the last one.
type slots struct {
	values []slotValue
	rows   int // of the largest interval
	arena  *mapped.Arena
	ops    kernels.Ops

	mu   sync.Mutex
	free []slot
}

// slot has a matrix for each buffer of the plan that is stored by worker.
type slot []kernels.Mat

// slotValue is a value of a frame that is in a slot.
type slotValue struct {
	at     phase
	layer  int
	value  Value
	buffer int
}

// MakeSlots allocates memory for count intervals of at most the given rows, if values are stored by
// worker. If more intervals need a slot at once, Occupy allocates it.
func (s *Store) MakeSlots(count, rows int) {
	s.slots.rows, s.slots.arena, s.slots.ops = rows, s.arena, s.ops
	if !s.Slotted() {
		return
	}
	for range count {
		s.slots.free = append(s.slots.free, s.newSlot())
	}
}

// Slotted reports whether some values are stored by worker.
func (s *Store) Slotted() bool { return len(s.slots.values) > 0 }

// SlotColumns returns the number of floats per row of a slot, with the lifetimes of m.
func (n *Network) SlotColumns(m Memory) int { return newPlan(n, m).sumWidths(true) }

func (s *Store) newSlot() slot {
	list := make(slot, len(s.plan.widths))
	for b, cols := range s.plan.widths {
		if s.plan.slotted[b] {
			list[b] = kernels.NewMat(s.slots.ops, s.slots.arena, s.slots.rows, cols)
		}
	}
	return list
}

// Occupy gives a frame a slot, if it has none and values are stored by worker. It may be called
// concurrently for different frames.
func (s *Store) Occupy(f *Frame) {
	if !s.Slotted() || f.slot != nil {
		return
	}
	s.slots.mu.Lock()
	if n := len(s.slots.free); n > 0 {
		f.slot, s.slots.free = s.slots.free[n-1], s.slots.free[:n-1]
	} else {
		f.slot = s.newSlot()
	}
	s.slots.mu.Unlock()
	for _, v := range s.slots.values {
		f.own[v.at][v.layer][v.value] = f.slot[v.buffer].Part(0, f.Rows())
	}
}

// Vacate takes the slot of a frame, whose values in it are lost.
func (s *Store) Vacate(f *Frame) {
	if f.slot == nil {
		return
	}
	for _, v := range s.slots.values {
		f.own[v.at][v.layer][v.value] = kernels.Mat{}
	}
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	s.slots.free, f.slot = append(s.slots.free, f.slot), nil
}

// Chains reports whether values can be stored by worker (InChain): gathers add rows or their products.
func (s Spec) Chains() bool { return s.Adds() || s.kind().Relational && !s.kind().Attends }

// awaitsSums reports whether a stage waits for sums over all vertices.
func (n *Network) awaitsSums(d Do) bool {
	sums, _ := n.Sums(d.Layer)
	return sums > 0 && (d.Stage == Apply || d.Stage == EmitBackward)
}

// Exchanges reports whether values are stored by worker and ranks exchange rows.
func (s *Store) Exchanges() bool { return s.Slotted() && s.plan.exchanged }

// EndsChain reports whether the next task of an interval after d waits for tasks of other intervals, or
// for the next pass.
func (n *Network) EndsChain(d Do) bool {
	switch d.Stage {
	case Emit:
		return n.Gathers(d.Layer) || n.awaitsSums(Do{Layer: d.Layer, Stage: Apply})
	case Loss:
		return n.Spec.WholeOutput
	case ApplyBackward:
		return n.GathersBackward(d.Layer) || n.awaitsSums(Do{Layer: d.Layer, Stage: EmitBackward})
	case EmitBackward:
		return d.Layer == 0
	}
	return false
}
