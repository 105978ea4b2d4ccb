package forecast

import (
	"errors"
	"testing"

	"siafu/kernels/model"
	"siafu/ranks/config"
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

// Pages of files take no more memory than the files.
func TestResident(t *testing.T) {
	for bytes, pages := range map[int64]int64{0: 0, 1 << 20: 3 << 20, 900 << 20: window} {
		m := Memory{{engine.Activations, Array, 100 << 20}, {"files", Mapped, bytes}, {Kept, Disk, 2 * bytes}}
		if got := m.Resident(); got != Program+100<<20+pages {
			t.Errorf("%d bytes with files of %d", got, 3*bytes)
		}
	}
}

// The smallest number of slices that fits is chosen, or the number that needs least.
func TestFitSlices(t *testing.T) {
	need := func(c config.Config) (int64, error) {
		if c.Slices > 6 {
			return 0, errors.New("too many")
		}
		return int64(1000 / c.Slices), nil
	}
	for limit, want := range map[int64]int{1000: 1, 999: 2, 400: 3, 1: 6} {
		c := config.Config{}
		c.Scratch = "."
		if got := FitSlices(c, limit, need); got != want {
			t.Errorf("limit %d: %d slices, want %d", limit, got, want)
		}
	}
	if got := FitSlices(config.Config{}, 1, need); got != 0 {
		t.Errorf("%d slices without a scratch file", got)
	}
}
