package ptx

import "math"

// atomically executes atom and red: memory becomes memory op b, and d its old value. Lanes run
// in ascending order.
func atomically(w *warp, in *inst) {
	m, a := in.mem, &w.regs[in.a]
	for _, l := range w.lanes {
		r, o := w.locate(in, a[l&31]+in.imm, l, true)
		w.noteAtomic(in, r, o, m.bytes, l)
		old := r.word(o, m.size)
		var b, c uint64
		b = w.regs[in.b][l&31]
		if in.c >= 0 {
			c = w.regs[in.c][l&31]
		}
		r.setWord(o, m.size, updated(in, r, old, b, c))
		if in.d >= 0 {
			w.regs[in.d][l&31] = old
		}
	}
}

// noteAtomic notes a write that also reads.
func (w *warp) noteAtomic(in *inst, r *region, o uint64, n int, l uint8) {
	if at := r.unwritten(o, n); at >= 0 {
		panic(w.finding(Uninitialised, in, l, "an atomic operation on memory that was never written").in(r, o, n, l))
	}
	w.noteWrite(in, r, o, n, l, atomic)
}

// updated returns the result of an atomic operation on old.
func updated(in *inst, r *region, old, b, c uint64) uint64 {
	k := in.mem.kind
	switch k {
	case f32:
		x, y := uint32(old), uint32(b)
		// Devices flush subnormal numbers in global memory, but not in shared memory.
		if r.base >= globalBase {
			x, y = flushed(x), flushed(y)
		}
		sum := math.Float32bits(math.Float32frombits(x) + math.Float32frombits(y))
		if r.base >= globalBase {
			sum = flushed(sum)
		}
		return uint64(sum)
	case f64:
		return math.Float64bits(math.Float64frombits(old) + math.Float64frombits(b))
	}
	old, b, c = extended(old, k), extended(b, k), extended(c, k)
	switch in.op {
	case opAdd:
		return old + b
	case opAnd:
		return old & b
	case opOr:
		return old | b
	case opXor:
		return old ^ b
	case opExch:
		return b
	case opCas:
		if old == b {
			return c
		}
		return old
	case opInc:
		if old >= b {
			return 0
		}
		return old + 1
	case opDec:
		if old == 0 || old > b {
			return b
		}
		return old - 1
	case opMin:
		if k.signed() {
			return uint64(min(int64(old), int64(b)))
		}
		return min(old, b)
	}
	if k.signed() {
		return uint64(max(int64(old), int64(b)))
	}
	return max(old, b)
}
