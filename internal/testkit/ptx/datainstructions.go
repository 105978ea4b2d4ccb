package ptx

// move compiles mov: of a register, an address, a predicate, or between a register and its
// parts.
func move(a *assembly) {
	k := a.kind()
	if k == pred {
		a.predicate1(opOr)
		return
	}
	if len(a.operands) == 2 && a.operands[0].kind == vector {
		a.unpack(k)
		return
	}
	if len(a.operands) == 2 && a.operands[1].kind == vector {
		a.pack(k)
		return
	}
	a.compute(inst{run: copied}, k, k)
}

// copied computes d = a.
func copied(w *warp, in *inst) {
	d, a := &w.regs[in.d], &w.regs[in.a]
	for _, l := range w.lanes {
		d[l&31] = a[l&31]
	}
}

// part returns the type of one of n parts of k.
func (a *assembly) part(k kind, n int) kind {
	size := 0
	if n > 0 {
		size = k.size() / n
	}
	a.failIf(n != 2 && n != 4 || size == 0, "%d parts of a register", n)
	return map[int]kind{1: b8, 2: b16, 4: b32}[size]
}

// unpack emits {x, y} = a.
func (a *assembly) unpack(k kind) {
	parts := a.operand().list
	from := a.source(k)
	each := a.part(k, len(parts))
	to := make([]int32, len(parts))
	for i := range parts {
		to[i] = -1
		if parts[i].kind != sink {
			to[i] = a.register(a.mustRegister(&parts[i]), each, false)
		}
	}
	// Read all before the first write: source and destination may be the same register.
	kept := a.value()
	a.emit(inst{run: copied, d: kept, a: from})
	for i, d := range to {
		if d >= 0 {
			a.emit(inst{run: cutOut, d: d, a: kept, imm: uint64(8 * i * each.size()), kind: each})
		}
	}
}

func (a *assembly) mustRegister(o *operand) *operand {
	a.failIf(o.kind != register, "the destination is not a register")
	return o
}

// cutOut computes d = the bits of kind from imm on of a.
func cutOut(w *warp, in *inst) {
	unary(w, in, func(x uint64) uint64 { return extended(x>>in.imm, in.kind) })
}

// pack emits d = {x, y}.
func (a *assembly) pack(k kind) {
	d := a.written(k)
	parts := a.operand().list
	each := a.part(k, len(parts))
	in := inst{run: joined, d: d, kind: each}
	for i := range parts {
		in.list = append(in.list, a.read(&parts[i], each, false))
	}
	a.emit(in)
}

// joined computes d = the concatenated registers of list.
func joined(w *warp, in *inst) {
	d := &w.regs[in.d]
	size := 8 * in.kind.size()
	for _, l := range w.lanes {
		x := uint64(0)
		for i, r := range in.list {
			x |= extended(w.regs[r][l&31], in.kind) << (i * size)
		}
		d[l&31] = x
	}
}

// conversion assembles cvt.
func conversion(a *assembly) {
	from := a.kind()
	to := a.kind()
	in := inst{kind: to, from: from, cut: a.has("sat")}
	whole := oneOf(a, map[string]rounding{"rni": nearest, "rzi": zero, "rmi": down, "rpi": up})
	in.round = a.rounding()
	a.unknownIf(whole != unrounded && in.round != unrounded)
	in.round = max(whole, in.round)
	a.flush = a.has("ftz") && (from == f32 || to == f32)
	a.unknownIf(from == pred || to == pred)
	if b, ok := packedHalf(a, &in); ok {
		a.packHalves(in, b)
		return
	}
	a.unknownIf(from == b16 || to == b16 || from == b32 || to == b32 || from == b64 || to == b64 || from == b8 || to == b8)
	switch {
	case from.float() && to.float():
		in.run = floatToFloat
		if whole != unrounded {
			in.op = opRem
		}
		narrows := to.size() < from.size() || to.size() == 2 && from != to
		a.unknownIf(narrows && in.round == unrounded || to == f64 && from != f64 && in.round != unrounded)
	case from.float():
		in.run = floatToInteger
		a.unknownIf(whole == unrounded)
	case to.float():
		in.run = integerToFloat
		wide := from.size() == 8 && in.round > nearest || from.size() == 8 && to.size() == 2 || to == f64 && in.round > nearest
		a.unknownIf(in.round == unrounded || whole != unrounded || wide)
	default:
		in.run = integerToInteger
		a.unknownIf(in.round != unrounded)
	}
	in.d = a.sure(a.dest(to, true))
	in.a = a.wide(from)
	in.b, in.c = -1, -1
	a.narrowFlush(in)
}

// narrowFlush emits a conversion that flushes its f32 values.
func (a *assembly) narrowFlush(in inst) {
	if in.from == f32 {
		a.flushed(&in.a)
	}
	a.emit(in)
	if a.flush && in.kind == f32 {
		a.emit(inst{run: flush, d: in.d, a: in.d})
	}
}

// packedHalf reports whether a conversion packs two f32 into two halves.
func packedHalf(a *assembly, in *inst) (kind, bool) {
	if in.kind != b32 || in.from != f32 || len(a.operands) != 3 {
		return none, false
	}
	a.unknownIf(in.round != nearest && in.round != zero || in.cut || a.flush)
	if a.opcode[len(a.opcode)-len("bf16x2.f32"):] == "bf16x2.f32" {
		return bf16, true
	}
	return f16, true
}

// packHalves emits d = {b, a}, rounded: the first operand is the upper half.
func (a *assembly) packHalves(in inst, half kind) {
	d := a.written(b32)
	upper, lower := a.source(f32), a.source(f32)
	x, y := a.value(), a.value()
	in.run, in.kind = floatToFloat, half
	in.d, in.a = y, upper
	a.emit(in)
	in.d, in.a = x, lower
	a.emit(in)
	a.emit(inst{run: joined, d: d, kind: b16, list: []int32{x, y}})
}

// addressConversion assembles cvta.
func addressConversion(a *assembly) {
	back := a.has("to")
	s := a.space()
	k := a.kind()
	a.unknownIf(k.size() != 8 || s == generic)
	in := inst{run: convertAddress}
	if s == shared || s == local || s == param {
		in.imm = window
		if back {
			in.imm = -in.imm
		}
	}
	a.compute(in, k, k)
}

// space takes the modifier of a space.
func (a *assembly) space() space { return oneOf(a, spaces) }

func spaceTest(a *assembly) {
	in := inst{run: isSpace, mem: &access{space: a.space()}}
	in.p = a.predicate()
	in.a = a.source(b64)
	a.emit(in)
}

// memory takes the modifiers of an access, and the type of an element.
func (a *assembly) memory() (m *access, n int) {
	m = &access{}
	n = max(1, oneOf(a, map[string]int{"v2": 2, "v4": 4}))
	m.strong = a.take("volatile", "relaxed", "acquire", "release") != ""
	a.take("weak")
	a.take("cta", "gpu", "sys")
	a.take("ca", "cg", "cs", "lu", "cv", "wb", "wt")
	a.take("nc")
	m.space = a.space()
	m.kind = a.kind()
	a.unknownIf(m.kind == pred)
	m.size = m.kind.size()
	m.bytes = n * m.size
	a.unknownIf(m.bytes > 16)
	return m, n
}

// addressed takes an address: its register and the offset. A variable's name also determines
// its space.
func (a *assembly) addressed(m *access) (int32, uint64) {
	o := a.operand()
	a.failIf(!o.address, "an operand is not an address")
	switch o.kind {
	case register:
		// Addresses of shared memory may have 32 bits.
		return a.register(o, b32, true), uint64(o.plus)
	case immediate:
		return a.constant(o.bits), 0
	case symbol:
		at, s := a.address(a.fr, o)
		switch {
		case m.space == param && s == local:
			m.space = local
		case m.space == generic && s != global && s != constant:
			at += window
		case m.space != generic && m.space != s && !(m.space == global && s == constant):
			a.fail("%s is a %v variable", o.name, s)
		}
		return a.constant(at), uint64(o.plus)
	}
	a.fail("an operand is not an address")
	return 0, 0
}

// elements returns the operands of a vector of n, or the single operand.
func (a *assembly) elements(n int) []operand {
	o := a.operand()
	if n == 1 && o.kind != vector {
		return []operand{*o}
	}
	a.failIf(o.kind != vector || len(o.list) != n, "expected a vector of %d elements", n)
	return o.list
}

func loading(a *assembly) {
	m, n := a.memory()
	in := inst{run: load, mem: m}
	for _, o := range a.elements(n) {
		d := int32(-1)
		if o.kind != sink {
			d = a.register(a.mustRegister(&o), m.kind, true)
		}
		in.list = append(in.list, d)
	}
	in.a, in.imm = a.addressed(m)
	if n == 1 && m.size == 4 && !m.kind.signed() && !m.strong && in.list[0] >= 0 {
		in.run, in.d = load4, in.list[0]
	}
	a.emit(in)
}

func storing(a *assembly) {
	m, n := a.memory()
	in := inst{run: store, mem: m}
	in.a, in.imm = a.addressed(m)
	for _, o := range a.elements(n) {
		in.list = append(in.list, a.read(&o, m.kind, true))
	}
	a.emit(in)
}

// atomicNames has the operations of atom and red.
var atomicNames = map[string]op{
	"add": opAdd, "min": opMin, "max": opMax, "and": opAnd, "or": opOr, "xor": opXor,
	"exch": opExch, "cas": opCas, "inc": opInc, "dec": opDec,
}

func atomicOperation(a *assembly) {
	returns := a.opcode[0] == 'a'
	a.take("relaxed", "acquire", "release", "acq_rel")
	a.take("cta", "gpu", "sys")
	m := &access{strong: true, space: a.space()}
	o := oneOf(a, atomicNames)
	a.take("noftz")
	m.kind = a.kind()
	m.size = m.kind.size()
	m.bytes = m.size
	in := inst{run: atomically, mem: m, op: o, c: -1, d: -1}
	if o == opNone || m.size < 4 && o != opCas || m.size < 2 ||
		m.kind.float() && (o != opAdd || m.size < 4) || (o == opInc || o == opDec) && m.kind != u32 {
		a.unknown()
	}
	if returns {
		in.d = a.dest(m.kind, false)
	}
	in.a, in.imm = a.addressed(m)
	in.b = a.source(m.kind)
	if o == opCas {
		in.c = a.source(m.kind)
	}
	a.emit(in)
}
