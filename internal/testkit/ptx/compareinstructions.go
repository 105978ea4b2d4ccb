package ptx

// comparisonNames are the operators of setp and set.
var comparisonNames = map[string]op{
	"eq": opEq, "ne": opNe, "lt": opLt, "le": opLe, "gt": opGt, "ge": opGe,
	"lo": opLt, "ls": opLe, "hi": opGt, "hs": opGe,
	"equ": opEqu, "neu": opNeu, "ltu": opLtu, "leu": opLeu, "gtu": opGtu, "geu": opGeu, "num": opNum, "nan": opNan,
}

// comparison takes the operator, and one that joins its outcome with a predicate.
func (a *assembly) comparison() (in inst) {
	a.unknownIf(len(a.mods) == 0)
	in.op = comparisonNames[a.mods[0]]
	a.unknownIf(in.op == opNone)
	a.mods = a.mods[1:]
	in.join = oneOf(a, map[string]op{"and": opAnd, "or": opOr, "xor": opXor})
	return in
}

// compared takes the operands of a comparison of kind k.
func (a *assembly) compared(in *inst, k kind) {
	in.a, in.b = a.source(k), a.source(k)
	a.flushed(&in.a, &in.b)
	if in.join != opNone {
		in.r, in.negate = a.predicateOf(a.operand())
	}
}

func setPredicate(a *assembly) {
	in := a.comparison()
	k := a.kind()
	a.flush = a.has("ftz")
	a.unknownIf(in.op >= opEqu && !k.float() || a.flush && k != f32)
	in.run = a.pick(k, comparisons)
	first, q := a.pair()
	in.p, in.q = -1, q
	if first.kind != sink {
		p, negated := a.predicateOf(first)
		a.failIf(negated || first.kind != register, "the destination is not a predicate")
		in.p = p
	}
	a.compared(&in, k)
	a.emit(in)
}

func setNumber(a *assembly) {
	in := a.comparison()
	k := a.kind()
	to := a.kind()
	a.flush = a.has("ftz")
	in.run = a.pick(k, settings)
	in.imm = 0xffffffff
	switch to {
	case f32:
		in.imm = 0x3f800000
	case u32, s32:
	default:
		a.unknown()
	}
	a.unknownIf(in.op >= opEqu && !k.float() || a.flush && k != f32)
	in.d = a.written(to)
	a.compared(&in, k)
	a.emit(in)
}

func selection(a *assembly) {
	k := a.kind()
	in := inst{run: choose}
	in.d, in.a, in.b = a.written(k), a.source(k), a.source(k)
	in.r, in.negate = a.predicateOf(a.operand())
	a.emit(in)
}
