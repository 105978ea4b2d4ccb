package ptx

// runs maps integer types to functions.
type runs = map[kind]func(*warp, *inst)

// Runs by type. Bits are unsigned.
var (
	integers2 = runs{s16: integer2[int16], u16: integer2[uint16], s32: integer2[int32], u32: integer2[uint32],
		s64: integer2[int64], u64: integer2[uint64]}
	integers1 = runs{s16: integer1[int16], u16: integer1[uint16], s32: integer1[int32], u32: integer1[uint32],
		s64: integer1[int64], u64: integer1[uint64]}
	lowMads = runs{s16: mad[int16, int16], u16: mad[uint16, uint16], s32: mad[int32, int32], u32: mad[uint32, uint32],
		s64: mad[int64, int64], u64: mad[uint64, uint64]}
	highMads = runs{s16: highMad[int16], u16: highMad[uint16], s32: highMad[int32], u32: highMad[uint32],
		s64: highMad[int64], u64: highMad[uint64]}
	wideMuls    = runs{s16: wideMul[int16, int32], u16: wideMul[uint16, uint32], s32: wideMul[int32, int64], u32: wideMul[uint32, uint64]}
	wideMads    = runs{s16: mad[int16, int32], u16: mad[uint16, uint32], s32: mad[int32, int64], u32: mad[uint32, uint64]}
	counts      = runs{s32: counted[int32], u32: counted[uint32], s64: counted[int64], u64: counted[uint64]}
	comparisons = runs{s16: compare[int16], u16: compare[uint16], s32: compare[int32], u32: compare[uint32], s64: compare[int64],
		u64: compare[uint64], f32: compare[float32], f64: compare[float64]}
	settings = runs{s16: set[int16], u16: set[uint16], s32: set[int32], u32: set[uint32], s64: set[int64], u64: set[uint64],
		f32: set[float32], f64: set[float64]}
	floats2  = runs{f32: float2[float32], f64: float2[float64]}
	floats1  = runs{f32: float1[float32], f64: float1[float64]}
	extracts = runs{s32: extract[int32], u32: extract[uint32], s64: extract[int64], u64: extract[uint64]}
)

// instructions maps the first word of each supported opcode to its compiler.
var instructions map[string]func(*assembly)

func init() {
	instructions = map[string]func(*assembly){
		"add": arithmetic2(opAdd), "sub": arithmetic2(opSub), "min": arithmetic2(opMin), "max": arithmetic2(opMax),
		"mul": multiplication, "mad": fusedOrMad, "fma": fusedOrMad, "div": division, "rem": integerOnly(opRem),
		"neg": sign(opNeg), "abs": sign(opAbs), "copysign": func(a *assembly) { a.floating2(opCopysign, a.kind()) },
		"sqrt": root(opSqrt), "rcp": root(opRcp), "rsqrt": approximation(opRsqrt), "ex2": approximation(opEx2),
		"lg2": approximation(opLg2), "sin": approximation(opSin), "cos": approximation(opCos), "tanh": approximation(opTanh),
		"and": bitwise(opAnd), "or": bitwise(opOr), "xor": bitwise(opXor), "not": inverse, "cnot": cnot,
		"shl": shift(opShl), "shr": shift(opShr), "shf": funnelShift, "bfe": bitExtract, "bfi": bitInsert,
		"prmt": bytePermute, "lop3": anyLogic,
		"popc": count(opPopc), "clz": count(opClz), "bfind": count(opBfind), "brev": reversal,
		"setp": setPredicate, "set": setNumber, "selp": selection,
		"mov": move, "cvt": conversion, "cvta": addressConversion, "isspacep": spaceTest,
		"ld": loading, "ldu": loading, "st": storing, "atom": atomicOperation, "red": atomicOperation,
		"prefetch": nothing, "prefetchu": nothing, "nanosleep": nothing,
		"membar": fence, "fence": fence,
		"bar": barrier, "barrier": barrier,
		"shfl": shuffling, "vote": voting, "match": matching, "activemask": activity,
		"bra": jumping, "ret": returning, "exit": leaving, "trap": trapping,
	}
}

// integral emits d = x op y.
func (a *assembly) integral(o op, k kind) {
	a.compute(inst{op: o, run: a.pick(k, integers2)}, k, k, k)
}

func integerOnly(o op) func(*assembly) {
	return func(a *assembly) { a.integral(o, a.kind()) }
}

func arithmetic2(o op) func(*assembly) {
	return func(a *assembly) {
		if k := a.kind(); k.float() {
			a.floating2(o, k)
		} else {
			a.integral(o, k)
		}
	}
}

// floating2 emits d = x op y of floats.
func (a *assembly) floating2(o op, k kind) {
	r := a.rounding()
	a.float()
	in := inst{op: o, kind: k, round: r, run: a.pick(k, floats2)}
	if r > nearest {
		in.run = directed32
	}
	a.unknownIf(k != f32 && (a.flush || a.cut || r > nearest) || o >= opMin && r != unrounded && o != opDiv)
	in.d, in.a, in.b, in.c = a.written(k), a.source(k), a.source(k), -1
	if r > nearest {
		in.c = in.a
	}
	a.arithmetic(in)
}

// multiplication assembles mul.lo, mul.hi, mul.wide, or mul of floats.
func multiplication(a *assembly) {
	k := a.kind()
	if k.float() {
		a.floating2(opMul, k)
		return
	}
	switch a.take("lo", "hi", "wide") {
	case "lo":
		a.integral(opMul, k)
	case "hi":
		a.integral(opMulHi, k)
	case "wide":
		a.compute(inst{run: a.pick(k, wideMuls)}, double(k), k, k)
	default:
		a.unknown()
	}
}

// double returns the unsigned type of twice the width.
func double(k kind) kind {
	if k.size() == 2 {
		return u32
	}
	return u64
}

// fusedOrMad assembles fma, and mad, which is the same of floats.
func fusedOrMad(a *assembly) {
	k := a.kind()
	if !k.float() {
		multiplyAddition(a, k)
		return
	}
	r := a.rounding()
	a.float()
	in := inst{run: a.pick(k, runs{f32: fma32, f64: fma64}), round: r}
	a.unknownIf(r == unrounded || k != f32 && (a.flush || a.cut || r > nearest))
	if r > nearest {
		in.run = directed32
	}
	in.d, in.a, in.b, in.c = a.written(k), a.source(k), a.source(k), a.source(k)
	a.arithmetic(in)
}

func multiplyAddition(a *assembly, k kind) {
	to, part := k, a.take("lo", "hi", "wide")
	if part == "wide" {
		to = double(k)
	}
	table := map[string]runs{"lo": lowMads, "hi": highMads, "wide": wideMads}[part]
	a.compute(inst{run: a.pick(k, table)}, to, k, k, to)
}

// division assembles div. Approximate ones are correctly rounded.
func division(a *assembly) {
	k := a.kind()
	if !k.float() {
		a.integral(opDiv, k)
		return
	}
	if form := a.take("rn", "approx", "full"); form == "" || k == f64 && form != "rn" {
		a.unknown()
	}
	a.floating2(opDiv, k)
}

// sign assembles neg and abs.
func sign(o op) func(*assembly) {
	return func(a *assembly) {
		k := a.kind()
		a.flush = a.has("ftz")
		in := inst{op: o, b: -1, c: -1}
		switch {
		case a.flush && k != f32:
			a.unknown()
		case k.float():
			in.run = a.pick(k.unsigned(), runs{u16: signed1[uint16], u32: signed1[uint32], u64: signed1[uint64]})
		case !k.signed():
			a.unknown()
		default:
			in.run = a.pick(k, integers1)
		}
		in.d, in.a = a.written(k), a.source(k)
		a.arithmetic(in)
	}
}

// root compiles sqrt and rcp, which have a rounding or are approximations.
func root(o op) func(*assembly) {
	return func(a *assembly) {
		a.unknownIf(a.take("rn", "approx") == "")
		a.function1(o, f32, f64)
	}
}

func approximation(o op) func(*assembly) {
	return func(a *assembly) {
		a.unknownIf(!a.has("approx"))
		if o == opRsqrt {
			a.function1(o, f32, f64)
			return
		}
		a.function1(o, f32, f32)
	}
}

// function1 emits d = f(x), of one of two types.
func (a *assembly) function1(o op, k1, k2 kind) {
	k := a.kind()
	a.flush = a.has("ftz")
	a.unknownIf(k != k1 && k != k2 || a.flush && k != f32)
	in := inst{op: o, run: a.pick(k, floats1), b: -1, c: -1}
	in.d, in.a = a.written(k), a.source(k)
	a.arithmetic(in)
}
