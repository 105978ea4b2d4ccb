package graphwork

import "siafu/kernels"

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
