package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The steps of the optimisers round where plain Go rounds: no multiplication is fused with the
// addition after it.

// constants returns the fields of the struct that the parameter k points to, one vector each.
func constants(s isa, n int) []VecVirtual {
	k := arg("k")
	v := make([]VecVirtual, n)
	for i := range v {
		v[i] = s.vec()
		VBROADCASTSS(Mem{Base: k, Disp: 4 * i}, v[i])
	}
	return v
}

// sgd generates a step of SGD without momentum: param -= lr·(grad + decay·param).
func sgd(s isa) {
	routine("sgd"+s.name, "func(param, grad, k *float32, full, lanes int)",
		"Makes one step of SGD. k is an avx.SGD.")
	param, grad := arg("param"), arg("grad")
	k := constants(s, 3)
	lr, decay := k[0], k[2]
	eachVector(s, func(at func(Register) Mem, mask Register) {
		w, g := s.loaded(at(param), mask), s.loaded(at(grad), mask)
		decayed(s, g, decay, w)
		VMULPS(lr, g, g)
		VSUBPS(g, w, w)
		s.store(w, mask, at(param))
	})
}

// decayed generates g += decay·w.
func decayed(s isa, g, decay, w VecVirtual) {
	t := s.vec()
	VMULPS(decay, w, t)
	VADDPS(t, g, g)
}

// momentum generates a step of SGD with momentum, whose state is buf.
func momentum(s isa) {
	routine("momentum"+s.name, "func(param, grad, buf, k *float32, full, lanes int)",
		"Makes one step of SGD with momentum. k is an avx.SGD.")
	param, grad, buf := arg("param"), arg("grad"), arg("buf")
	k := constants(s, 3)
	lr, mu, decay := k[0], k[1], k[2]
	eachVector(s, func(at func(Register) Mem, mask Register) {
		w, g, b := s.loaded(at(param), mask), s.loaded(at(grad), mask), s.loaded(at(buf), mask)
		decayed(s, g, decay, w)
		VMULPS(mu, b, b)
		VADDPS(g, b, b)
		s.store(b, mask, at(buf))
		VMULPS(lr, b, b)
		VSUBPS(b, w, w)
		s.store(w, mask, at(param))
	})
}

// adam generates a step of Adam or AdamW, in one pass.
func adam(s isa) {
	routine("adam"+s.name, "func(param, grad, m, v, k *float32, full, lanes int)",
		"Makes one step of Adam. k is an avx.Adam.")
	param, grad, first, second := arg("param"), arg("grad"), arg("m"), arg("v")
	k := constants(s, 9)
	shrink, l2, b1, c1, b2, c2, size, root, eps := k[0], k[1], k[2], k[3], k[4], k[5], k[6], k[7], k[8]
	eachVector(s, func(at func(Register) Mem, mask Register) {
		w, g := s.loaded(at(param), mask), s.loaded(at(grad), mask)
		VMULPS(shrink, w, w)
		decayed(s, g, l2, w)

		m, v, t := s.loaded(at(first), mask), s.vec(), s.vec()
		VMULPS(b1, m, m)
		VMULPS(c1, g, t)
		VADDPS(t, m, m)
		s.store(m, mask, at(first))

		s.load(at(second), mask, v)
		VMULPS(b2, v, v)
		VMULPS(c2, g, t)
		VMULPS(g, t, t)
		VADDPS(t, v, v)
		s.store(v, mask, at(second))

		VSQRTPS(v, v)
		VMULPS(root, v, v)
		VADDPS(eps, v, v)
		VMULPS(size, m, m)
		VDIVPS(v, m, m)
		VSUBPS(m, w, w)
		s.store(w, mask, at(param))
	})
}
