package forecast

import (
	"testing"

	"siafu/kernels/model"
	"siafu/ranks/engine"
)

// Terms move to the scratch file one after another, until the rest fits in the limit. Terms that are
// read at random stay.
func TestStream(t *testing.T) {
	all := Memory{
		{engine.Activations, Array, 100 << 20}, {model.Streamed, Array, 300 << 20}, {Kept, Array, 200 << 20}, {"files", Mapped, 900 << 20},
	}
	fixed := Program + window
	for limit, moved := range map[int64]int{fixed + 600<<20: 0, fixed + 599<<20: 1, fixed + 400<<20: 1, fixed + 399<<20: 2, 0: 2} {
		m := all.And(nil).stream(limit)
		if got := len(m.Streamed()); got != moved {
			t.Errorf("limit %d: %d terms moved, want %d", limit, got, moved)
		}
		if m.Resident() > limit && limit > fixed+100<<20 {
			t.Errorf("%d bytes do not fit in %d", m.Resident(), limit)
		}
		if m[0].Kind != Array {
			t.Error("activations that gathers read moved")
		}
	}
}
