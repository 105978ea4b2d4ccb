package graphwork

import "siafu/kernels"

// half is the form of a matrix that gathers read in bfloat16, multiplied by the scale of columns.
type half struct {
	plain
	rounded kernels.Mat
	scale   kernels.Vector[float32]
}

func (h *half) publish(i Interval, rows kernels.Mat) {
	i.Ops.Narrow(i.rows(h.rounded), rows, i.scale(h.scale))
}

func (h *half) gatherOwn(i Interval, dst kernels.Mat, m kernels.Edges, x kernels.Mat) {
	h.gather(i, dst, m, x, false)
}

func (h *half) gather(i Interval, dst kernels.Mat, m kernels.Edges, _ kernels.Mat, add bool) {
	m.ColScale = kernels.Vector[float32]{}
	i.Ops.SpMM(dst, m, h.rounded, add)
}

// useHalves rounds all matrices of s.
func (w *Work) useHalves(s *sums, o Options) {
	l, own := s.l, w.shard.NumOwn()
	forward, backward := w.gatherNumbers(l.shape.Layer)
	s.own = &half{rounded: w.sharedHalf(own, l.Width, forward), scale: l.mesh.col}
	if o.Linked != nil {
		s.ghosts = o.Linked.Layer(l.shape.Layer).Gather.(*sums).own
	} else {
		s.ghosts = &half{rounded: w.newHalf(w.Plan.Ghosts, l.Width), scale: l.mesh.col.From(own)}
	}
	if l.shape.Backward {
		s.grads = &half{rounded: w.sharedHalf(own, l.Width, backward), scale: l.mesh.row}
	}
}

// halfKey names rounded copies of rows that layers share. A gather needs the copies of its own rows, and
// some intervals may still be in the gather before. So a copy of the gather before that one is free.
type halfKey struct{ rows, width, parity int }

// gatherNumbers returns the positions of layer l's gathers, forward and backward, in a training pass.
func (w *Work) gatherNumbers(l int) (forward, backward int) {
	n := w.store.Network
	for k := range n.Layers {
		switch {
		case !n.Gathers(k):
		case k < l:
			forward++
		case k > l && n.GathersBackward(k):
			backward++
		}
		if n.Gathers(k) {
			backward++
		}
	}
	return forward, backward
}

// sharedHalf returns memory for the rounded copies [rows x width] of the number-th gather of a pass.
// Asynchronous intervals may be in any gather, and with Options.First a pass omits gathers: neither shares.
func (w *Work) sharedHalf(rows, width, number int) kernels.Mat {
	if w.apart {
		return w.newHalf(rows, width)
	}
	key := halfKey{rows, width, number % 2}
	x, ok := w.halves[key]
	if !ok {
		x = w.newHalf(rows, width)
		w.halves[key] = x
	}
	return x
}

func (w *Work) newHalf(rows, width int) kernels.Mat {
	return kernels.NewHalf(w.ops, w.arena.For(Halves), rows, width, kernels.HalfSlack)
}
