package halo

import (
	"slices"

	"siafu/halo/codec"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// errorBuffer has the accumulated errors of a series of rows, in the memory of the last encoder: the
// host's or the rank's device's. Either memory is allocated on first use.
type errorBuffer struct {
	n, cols     int
	rows        []float32
	deviceRows  kernels.Mat
	deviceNewer bool // the device's copy is newer
}

// onHost returns the errors on the host.
func (l *errorBuffer) onHost(o kernels.Ops, a *mapped.Arena) codec.Feedback {
	if l.rows == nil {
		l.rows = mapped.Make[float32](a, l.n*l.cols)
	}
	if l.deviceNewer {
		kernels.Read(o, l.rows, l.deviceRows)
		l.deviceNewer = false
	}
	return l.rows
}

// onDevice returns the errors in the memory of o.
func (l *errorBuffer) onDevice(o kernels.Ops, a *mapped.Arena) kernels.Mat {
	if l.deviceRows.IsNil() {
		l.deviceRows = kernels.NewMat(o, a, l.n, l.cols)
	}
	if !l.deviceNewer && l.rows != nil {
		kernels.Write(o, l.deviceRows, l.rows)
	}
	l.deviceNewer = true
	return l.deviceRows
}

// copy returns a copy of the errors.
func (l *errorBuffer) copy(o kernels.Ops) []float32 {
	if !l.deviceNewer {
		return slices.Clone(l.rows)
	}
	rows := make([]float32, l.n*l.cols)
	kernels.Read(o, rows, l.deviceRows)
	return rows
}

// errorsToFeed returns the accumulated errors of the sent rows, nil without error feedback.
func (h *chunked) errorsToFeed() *errorBuffer {
	if h.codecErrors == nil || h.key.OutsideTraining {
		return nil
	}
	return h.errorsOf(series{h.key.Layer, h.direction.out.Cols, h.direction.backward}, max(h.direction.outAll, h.direction.out.Len))
}

// errorsOf returns the errors of a series, allocated for the given number of rows.
func (h *chunked) errorsOf(s series, rows int) *errorBuffer {
	l, ok := h.codecErrors[s]
	if !ok {
		l = new(errorBuffer)
		h.codecErrors[s] = l
	}
	l.n, l.cols = rows, s.cols
	return l
}

// reserve allocates the memory for the errors of a layer. h may be nil.
func (h *chunked) reserve(s Shape, p *Plan) {
	if h == nil || h.codecErrors == nil {
		return
	}
	allocate := func(backward bool, rows int) {
		if l := h.errorsOf(series{s.Layer, s.Width, backward}, rows); h.deviceCodec != nil {
			l.onDevice(h.ops, h.arena)
		} else {
			l.onHost(h.ops, h.arena)
		}
	}
	allocate(false, len(p.SendRows))
	if s.Backward {
		allocate(true, p.Ghosts)
	}
}
