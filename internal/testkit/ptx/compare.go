package ptx

// compare sets predicates p, and q to its opposite, to a op b, joined with r.
func compare[T number](w *warp, in *inst) {
	w.judge(in, compared[T](w, in))
}

// compared returns the mask of lanes in which a op b holds.
func compared[T number](w *warp, in *inst) (m uint32) {
	a, b := &w.regs[in.a], &w.regs[in.b]
	switch in.op {
	case opEq:
		for _, l := range w.lanes {
			m |= bit(get[T](a, l) == get[T](b, l)) << (l & 31)
		}
	case opNe:
		for _, l := range w.lanes {
			x, y := get[T](a, l), get[T](b, l)
			m |= bit(x < y || x > y) << (l & 31)
		}
	case opLt:
		for _, l := range w.lanes {
			m |= bit(get[T](a, l) < get[T](b, l)) << (l & 31)
		}
	case opLe:
		for _, l := range w.lanes {
			m |= bit(get[T](a, l) <= get[T](b, l)) << (l & 31)
		}
	case opGt:
		for _, l := range w.lanes {
			m |= bit(get[T](a, l) > get[T](b, l)) << (l & 31)
		}
	case opGe:
		for _, l := range w.lanes {
			m |= bit(get[T](a, l) >= get[T](b, l)) << (l & 31)
		}
	default:
		for _, l := range w.lanes {
			m |= bit(unordered(in.op, get[T](a, l), get[T](b, l))) << (l & 31)
		}
	}
	return m
}

// unordered evaluates the comparisons that hold if x or y is a NaN.
func unordered[T number](o op, x, y T) bool {
	nan := x != x || y != y
	switch o {
	case opEqu:
		return nan || x == y
	case opNeu:
		return nan || x != y
	case opLtu:
		return nan || x < y
	case opLeu:
		return nan || x <= y
	case opGtu:
		return nan || x > y
	case opGeu:
		return nan || x >= y
	case opNum:
		return !nan
	}
	return nan
}

func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// judge writes the result of a comparison.
func (w *warp) judge(in *inst, m uint32) {
	opposite := ^m
	if in.join != opNone {
		r := w.predicate(in)
		m, opposite = logic(in.join, m, r), logic(in.join, opposite, r)
	}
	w.assign(in.p, m)
	w.assign(in.q, opposite)
}

// predicate returns r, negated if the instruction specifies it.
func (w *warp) predicate(in *inst) uint32 {
	m := w.preds[in.r]
	if in.negate {
		return ^m
	}
	return m
}

// assign sets a predicate for the active threads.
func (w *warp) assign(p int32, m uint32) {
	if p >= 0 {
		w.preds[p] = w.preds[p]&^w.active | m&w.active
	}
}

func logic(o op, a, b uint32) uint32 {
	switch o {
	case opAnd:
		return a & b
	case opOr:
		return a | b
	case opXor:
		return a ^ b
	}
	return a
}

// logicPred executes and, or, xor, not and mov of predicates a and b.
func logicPred(w *warp, in *inst) {
	a := w.preds[in.a]
	if in.negate {
		a = ^a
	}
	if in.op == opNot {
		w.assign(in.p, ^a)
		return
	}
	b := uint32(0)
	if in.b >= 0 {
		b = w.preds[in.b]
	}
	w.assign(in.p, logic(in.op, a, b))
}

// set executes compare with a numeric result: all ones, or 1 as a float.
func set[T number](w *warp, in *inst) {
	m := compared[T](w, in)
	if in.join != opNone {
		m = logic(in.join, m, w.predicate(in))
	}
	d := &w.regs[in.d]
	for _, l := range w.lanes {
		x := uint32(0)
		if m>>(l&31)&1 != 0 {
			x = uint32(in.imm)
		}
		put(d, l, x)
	}
}

// choose executes selp: a where r holds, else b.
func choose(w *warp, in *inst) {
	d, a, b := &w.regs[in.d], &w.regs[in.a], &w.regs[in.b]
	m := w.predicate(in)
	for _, l := range w.lanes {
		x := a[l&31]
		if m>>(l&31)&1 == 0 {
			x = b[l&31]
		}
		d[l&31] = x
	}
}
