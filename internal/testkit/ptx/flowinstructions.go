package ptx

// nothing compiles an instruction without visible effect.
func nothing(a *assembly) {
	a.mods, a.at = nil, len(a.operands)
}

// fence compiles to nothing: accesses are always ordered here.
func fence(a *assembly) {
	a.take("cta", "gl", "sys", "gpu")
	a.take("sc", "acq_rel")
	a.take("cta", "gl", "sys", "gpu")
}

// barrier assembles bar.sync of all threads of a block, bar.red and bar.warp.sync.
func barrier(a *assembly) {
	if a.has("warp") {
		a.unknownIf(!a.has("sync"))
		a.emit(inst{run: meetLanes, flow: meetWarp, c: a.source(b32)})
		return
	}
	a.take("cta")
	a.take("aligned")
	if a.has("sync") {
		a.blockBarrier()
		a.emit(inst{flow: meetBlock})
		return
	}
	a.unknownIf(!a.has("red"))
	in := inst{run: reduceBlock, flow: meetBlock, p: -1}
	in.op = oneOf(a, map[string]op{"popc": opPopcBar, "and": opAll, "or": opAny})
	k := a.kind()
	switch {
	case in.op == opPopcBar && k == u32:
		in.d = a.written(u32)
	case in.op != opNone && in.op != opPopcBar && k == pred:
		in.p = a.predicate()
	default:
		a.unknown()
	}
	a.blockBarrier()
	in.r, in.negate = a.predicateOf(a.operand())
	a.emit(in)
}

// blockBarrier takes the number of a barrier. Barriers of a part of the block are not
// supported.
func (a *assembly) blockBarrier() {
	if o := a.operand(); o.kind != immediate || o.bits > 15 {
		a.fail("a barrier whose number is not a constant")
	}
	if a.more() && a.operands[a.at].kind != register && a.operands[a.at].kind != immediate {
		return
	}
	if a.more() && !(a.operands[a.at].kind == register && a.fr.f.regs[a.operands[a.at].reg] == pred) {
		a.fail("barriers of a part of a block are not supported")
	}
}

func shuffling(a *assembly) {
	in := inst{run: shuffle, flow: meetWarp, d: -1}
	a.unknownIf(!a.has("sync"))
	in.op = oneOf(a, map[string]op{"up": opUp, "down": opDown, "bfly": opBfly, "idx": opIdx})
	if k := a.kind(); k.size() != 4 || in.op == opNone {
		a.unknown()
	}
	first, q := a.pair()
	in.p = q
	if first.kind != sink {
		in.d = a.register(a.mustRegister(first), b32, false)
	}
	in.a, in.b = a.source(b32), a.source(b32)
	in.list = []int32{a.source(b32)}
	in.c = a.source(b32)
	a.emit(in)
}

func voting(a *assembly) {
	in := inst{run: vote, flow: meetWarp, p: -1}
	a.unknownIf(!a.has("sync"))
	in.op = oneOf(a, map[string]op{"all": opAll, "any": opAny, "uni": opUni, "ballot": opBallot})
	switch k := a.kind(); {
	case in.op == opBallot && k == b32:
		in.d = a.written(b32)
	case in.op != opNone && in.op != opBallot && k == pred:
		in.p = a.predicate()
	default:
		a.unknown()
	}
	in.r, in.negate = a.predicateOf(a.operand())
	in.c = a.source(b32)
	a.emit(in)
}

func matching(a *assembly) {
	in := inst{run: match, flow: meetWarp, p: -1}
	a.unknownIf(!a.has("sync"))
	in.op = oneOf(a, map[string]op{"any": opAny, "all": opAll})
	in.kind = a.kind()
	a.unknownIf(in.op == opNone || in.kind != b32 && in.kind != b64)
	first, q := a.pair()
	a.unknownIf(q >= 0 && in.op == opAny)
	in.p = q
	in.d = a.register(a.mustRegister(first), b32, false)
	in.a, in.c = a.source(in.kind), a.source(b32)
	a.emit(in)
}

func activity(a *assembly) {
	a.unknownIf(a.kind() != b32)
	a.emit(inst{run: activeMask, d: a.written(b32)})
}

func jumping(a *assembly) {
	a.take("uni")
	o := a.operand()
	a.failIf(o.kind != labelled, "a branch to no label")
	a.emit(inst{flow: jump, target: a.fr.labels + int32(o.reg)})
}

// returning ends the threads or, in a called function, jumps to its end.
func returning(a *assembly) {
	a.take("uni")
	if a.fr.called {
		a.emit(inst{flow: jump, target: a.fr.end})
		return
	}
	leaving(a)
}

func leaving(a *assembly) { a.emit(inst{flow: leave}) }

func trapping(a *assembly) { a.emit(inst{flow: trapped}) }
