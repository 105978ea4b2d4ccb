package halo

import (
	"slices"

	"siafu/graph/mapped"
	"siafu/halo/codec"
	"siafu/kernels"
)

// lost is what a codec has lost of a series of rows: on the host or where the rank's
// Ops compute, whichever encoded last. Memory for either is made when it is first
// asked for.
type lost struct {
	n, cols int
	rows    []float32
	there   kernels.Mat
	away    bool // there is newer
}

// here is l on the host.
func (l *lost) here(o kernels.Ops, a *mapped.Arena) codec.Feedback {
	if l.rows == nil {
		l.rows = mapped.Make[float32](a, l.n*l.cols)
	}
	if l.away {
		kernels.Read(o, l.rows, l.there)
		l.away = false
	}
	return l.rows
}

// elsewhere is l where o computes.
func (l *lost) elsewhere(o kernels.Ops, a *mapped.Arena) kernels.Mat {
	if l.there.IsNil() {
		l.there = kernels.NewMat(o, a, l.n, l.cols)
	}
	if !l.away && l.rows != nil {
		kernels.Write(o, l.there, l.rows)
	}
	l.away = true
	return l.there
}

// copy is l by itself.
func (l *lost) copy(o kernels.Ops) []float32 {
	if !l.away {
		return slices.Clone(l.rows)
	}
	rows := make([]float32, l.n*l.cols)
	kernels.Read(o, rows, l.there)
	return rows
}

// losing is what has been lost of the rows that go out; nil where nothing is kept.
func (h *chunked) losing() *lost {
	if h.losts == nil || h.key.Apart {
		return nil
	}
	return h.lostOf(series{h.key.Layer, h.way.out.Cols, h.way.backward}, h.way.out.Len)
}

// lostOf is that of a series of so many rows.
func (h *chunked) lostOf(s series, rows int) *lost {
	l, ok := h.losts[s]
	if !ok {
		l = new(lost)
		h.losts[s] = l
	}
	l.n, l.cols = rows, s.cols
	return l
}

// reserve makes the memory that a series will be asked for.
func (h *chunked) reserve(s series, rows int) {
	if l := h.lostOf(s, rows); h.far != nil {
		l.elsewhere(h.ops, h.arena)
	} else {
		l.here(h.ops, h.arena)
	}
}
