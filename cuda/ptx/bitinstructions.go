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
	if k > b64 {
		a.unknown()
	}
	return k
}

func inverse(a *assembly) {
	k := a.kind()
	if k == pred {
		in := inst{run: logicPred, op: opNot, p: a.predicate(), b: -1}
		in.a, in.negate = a.predicateOf(a.operand())
		a.emit(in)
		return
	}
	in := inst{op: opNot, run: a.pick(k.bits(a), integers1)}
	in.d, in.a = a.written(k), a.source(k)
	a.emit(in)
}

func cnot(a *assembly) {
	k := a.kind()
	in := inst{op: opCnot, run: a.pick(k.bits(a), integers1)}
	in.d, in.a = a.written(k), a.source(k)
	a.emit(in)
}

func shift(o op) func(*assembly) {
	return func(a *assembly) {
		k := a.kind()
		in := inst{op: o, run: a.pick(k, integers2)}
		in.d, in.a, in.b = a.written(k), a.source(k), a.source(u32)
		a.emit(in)
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
	if a.kind() != b32 || mode == "" {
		a.unknown()
	}
	in.d, in.a, in.b, in.c = a.written(b32), a.source(b32), a.source(b32), a.source(u32)
	a.emit(in)
}

func bitExtract(a *assembly) {
	k := a.kind()
	in := inst{run: a.pick(k, extracts)}
	in.d, in.a, in.b, in.c = a.written(k), a.source(k), a.source(u32), a.source(u32)
	a.emit(in)
}

func bitInsert(a *assembly) {
	k := a.kind()
	in := inst{run: a.pick(k.bits(a), runs{u32: insert[uint32], u64: insert[uint64]})}
	in.d, in.a, in.b, in.c = a.written(k), a.source(k), a.source(k), a.source(u32)
	in.list = []int32{a.source(u32)}
	a.emit(in)
}

func bytePermute(a *assembly) {
	if a.kind() != b32 {
		a.unknown()
	}
	in := inst{run: permute}
	in.d, in.a, in.b, in.c = a.written(b32), a.source(b32), a.source(b32), a.source(b32)
	a.emit(in)
}

func anyLogic(a *assembly) {
	if a.kind() != b32 {
		a.unknown()
	}
	in := inst{run: lop3}
	in.d, in.a, in.b, in.c = a.written(b32), a.source(b32), a.source(b32), a.source(b32)
	table := a.operand()
	if table.kind != immediate {
		a.fail("the table of lop3 is not a number")
	}
	in.imm = table.bits
	a.emit(in)
}

func count(o op) func(*assembly) {
	return func(a *assembly) {
		k := a.kind()
		in := inst{op: o, run: a.pick(k, counts), cut: o == opBfind && a.has("shiftamt")}
		in.d, in.a = a.written(u32), a.source(k)
		a.emit(in)
	}
}

func reversal(a *assembly) {
	k := a.kind()
	in := inst{run: a.pick(k.bits(a), runs{u32: reversed32, u64: reversed64})}
	in.d, in.a = a.written(k), a.source(k)
	a.emit(in)
}
