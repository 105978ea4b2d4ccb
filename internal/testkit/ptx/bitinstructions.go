package ptx

// bitwise assembles and, or and xor, of numbers or predicates.
func bitwise(o op) func(*assembly) {
	return func(a *assembly) {
		k := a.kind()
		if k != pred {
			a.integral(o, k.bits(a))
			return
		}
		in := inst{run: logicPred, op: o, p: a.predicate()}
		in.a, in.negate = a.predicateOf(a.operand())
		b, negated := a.predicateOf(a.operand())
		in.b = a.straight(b, negated)
		a.emit(in)
	}
}

// straight returns a predicate, inverted if negated.
func (a *assembly) straight(p int32, negated bool) int32 {
	if !negated {
		return p
	}
	to := a.mask()
	a.emit(inst{run: logicPred, op: opNot, p: to, a: p, b: -1})
	return to
}

// bits returns k if that is an unsigned type.
func (k kind) bits(a *assembly) kind {
	a.unknownIf(k > b64)
	return k
}

func inverse(a *assembly) {
	k := a.kind()
	if k == pred {
		a.predicate1(opNot)
		return
	}
	a.compute(inst{op: opNot, run: a.pick(k.bits(a), integers1)}, k, k)
}

// predicate1 emits p = op a of predicates.
func (a *assembly) predicate1(o op) {
	in := inst{run: logicPred, op: o, p: a.predicate(), b: -1}
	in.a, in.negate = a.predicateOf(a.operand())
	a.emit(in)
}

func cnot(a *assembly) {
	k := a.kind()
	a.compute(inst{op: opCnot, run: a.pick(k.bits(a), integers1)}, k, k)
}

func shift(o op) func(*assembly) {
	return func(a *assembly) {
		k := a.kind()
		a.compute(inst{op: o, run: a.pick(k, integers2)}, k, k, u32)
	}
}

func funnelShift(a *assembly) {
	in := inst{run: funnel, op: opShr}
	switch a.take("l", "r") {
	case "":
		a.unknown()
	case "l":
		in.op = opShl
	}
	mode := a.take("wrap", "clamp")
	in.cut = mode == "clamp"
	a.unknownIf(a.kind() != b32 || mode == "")
	a.compute(in, b32, b32, b32, u32)
}

func bitExtract(a *assembly) {
	k := a.kind()
	a.compute(inst{run: a.pick(k, extracts)}, k, k, u32, u32)
}

func bitInsert(a *assembly) {
	k := a.kind()
	in := inst{run: a.pick(k.bits(a), runs{u32: insert[uint32], u64: insert[uint64]})}
	in.d, in.a, in.b, in.c = a.written(k), a.source(k), a.source(k), a.source(u32)
	in.list = []int32{a.source(u32)}
	a.emit(in)
}

func bytePermute(a *assembly) {
	a.unknownIf(a.kind() != b32)
	a.compute(inst{run: permute}, b32, b32, b32, b32)
}

func anyLogic(a *assembly) {
	a.unknownIf(a.kind() != b32)
	in := inst{run: lop3}
	in.d, in.a, in.b, in.c = a.written(b32), a.source(b32), a.source(b32), a.source(b32)
	table := a.operand()
	a.failIf(table.kind != immediate, "the table of lop3 is not a number")
	in.imm = table.bits
	a.emit(in)
}

func count(o op) func(*assembly) {
	return func(a *assembly) {
		k := a.kind()
		a.compute(inst{op: o, run: a.pick(k, counts), cut: o == opBfind && a.has("shiftamt")}, u32, k)
	}
}

func reversal(a *assembly) {
	k := a.kind()
	a.compute(inst{run: a.pick(k.bits(a), runs{u32: reversed[uint32], u64: reversed[uint64]})}, k, k)
}
