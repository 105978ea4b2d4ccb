package ptx

import "slices"

// assembly is an instruction being compiled: its handler takes the known modifiers and
// operands; remaining ones are an error.
type assembly struct {
	*compiler
	fr       *frame
	opcode   string
	mods     []string
	operands []operand
	at       int // operands taken
	flush    bool
	cut      bool
}

func (a *assembly) unknown() {
	a.fail("unknown instruction: %s", a.opcode)
}

// unknownIf calls unknown if bad is true.
func (a *assembly) unknownIf(bad bool) {
	if bad {
		a.unknown()
	}
}

// take takes the first modifier among names, or returns "".
func (a *assembly) take(names ...string) string {
	for i, m := range a.mods {
		if slices.Contains(names, m) {
			a.mods = slices.Delete(a.mods, i, i+1)
			return m
		}
	}
	return ""
}

// oneOf takes the first modifier in names and returns its value, or the zero value.
func oneOf[T any](a *assembly, names map[string]T) (value T) {
	for i, m := range a.mods {
		if v, ok := names[m]; ok {
			a.mods = slices.Delete(a.mods, i, i+1)
			return v
		}
	}
	return value
}

func (a *assembly) has(name string) bool { return a.take(name) != "" }

// kind takes the type, which is the last modifier.
func (a *assembly) kind() kind {
	a.unknownIf(len(a.mods) == 0)
	last := len(a.mods) - 1
	k := kinds[a.mods[last]]
	a.unknownIf(k == none)
	a.mods = a.mods[:last]
	return k
}

// finish checks that all modifiers and operands have been taken.
func (a *assembly) finish() {
	a.unknownIf(len(a.mods) > 0)
	if a.at != len(a.operands) {
		a.fail("%d operands, but %s has %d", len(a.operands), a.opcode, a.at)
	}
}

// operand takes the next one.
func (a *assembly) operand() *operand {
	if a.at >= len(a.operands) {
		a.fail("too few operands of %s", a.opcode)
	}
	a.at++
	return &a.operands[a.at-1]
}

// more reports whether there is one more operand.
func (a *assembly) more() bool { return a.at < len(a.operands) }

// source returns the register of an operand that is read with kind k.
func (a *assembly) source(k kind) int32 { return a.read(a.operand(), k, false) }

// wide returns a source register that may be larger than k.
func (a *assembly) wide(k kind) int32 { return a.read(a.operand(), k, true) }

func (a *assembly) read(o *operand, k kind, wide bool) int32 {
	if o.negated || o.second != nil || o.address {
		a.fail("an invalid operand of %s", a.opcode)
	}
	switch o.kind {
	case register:
		return a.register(o, k, wide)
	case immediate, floating:
		return a.constant(extended(o.constant(k), k))
	case special:
		return a.special(o.name)
	case symbol:
		at, _ := a.address(a.fr, o)
		if at >= spaceEnd && k.size() < 8 {
			a.fail("the address of %s has 64 bits", o.name)
		}
		return a.constant(at + uint64(o.plus))
	}
	a.fail("an invalid operand of %s", a.opcode)
	return 0
}

// register returns an operand's index in the warp's values.
func (a *assembly) register(o *operand, k kind, wide bool) int32 {
	have := a.fr.f.regs[o.reg]
	if have == pred || have.size() < k.size() || !wide && have.size() != k.size() {
		a.fail("a register of another type than %s has", a.opcode)
	}
	return a.fr.regs[o.reg]
}

// dest returns the register of an operand that is written; with wide it may be larger than k.
// A sink is -1.
func (a *assembly) dest(k kind, wide bool) int32 {
	o := a.operand()
	if o.kind == sink {
		return -1
	}
	a.failIf(o.kind != register || o.negated || o.address || o.second != nil, "the destination is not a register")
	return a.register(o, k, wide)
}

// written returns the destination of an operand that must not be a sink.
func (a *assembly) written(k kind) int32 { return a.sure(a.dest(k, false)) }

// compute emits an instruction with a destination and up to three sources of the given kinds.
func (a *assembly) compute(in inst, to kind, from ...kind) {
	in.d = a.written(to)
	for i, r := range []*int32{&in.a, &in.b, &in.c}[:len(from)] {
		*r = a.source(from[i])
	}
	a.emit(in)
}

func (a *assembly) sure(d int32) int32 {
	if d < 0 {
		a.fail("%s needs a destination", a.opcode)
	}
	return d
}

// predicateOf returns the mask of an operand, and whether it is negated.
func (a *assembly) predicateOf(o *operand) (int32, bool) {
	switch {
	case o.kind == register && a.fr.f.regs[o.reg] == pred && !o.address:
		return a.fr.regs[o.reg], o.negated
	case o.kind == immediate:
		return a.never(), (o.bits&1 != 0) != o.negated
	}
	a.fail("an operand of %s is not a predicate", a.opcode)
	return 0, false
}

// never returns a predicate that is false.
func (a *assembly) never() int32 {
	if a.compiler.no == 0 {
		a.compiler.no = a.mask() + 1
	}
	return a.compiler.no - 1
}

// predicate returns the predicate of the next operand, which is written.
func (a *assembly) predicate() int32 {
	o := a.operand()
	if o.kind == sink {
		return -1
	}
	p, negated := a.predicateOf(&operand{kind: o.kind, reg: o.reg, negated: o.negated})
	a.failIf(negated || o.kind != register || o.second != nil, "the destination is not a predicate")
	return p
}

// pair parses p|q. q may be absent: -1.
func (a *assembly) pair() (first *operand, q int32) {
	o := a.operand()
	q = -1
	if o.second != nil && o.second.kind != sink {
		q, _ = a.predicateOf(o.second)
	}
	one := *o
	one.second = nil
	return &one, q
}

// float takes the modifiers of arithmetic on f32: flushing and saturation.
func (a *assembly) float() {
	a.flush = a.has("ftz")
	a.cut = a.has("sat")
}

// arithmetic emits an instruction on f32 or another type, with instructions for flushing and
// saturation.
func (a *assembly) arithmetic(in inst) {
	a.flushed(&in.a, &in.b, &in.c)
	a.emit(in)
	if a.flush {
		a.emit(inst{run: flush, d: in.d, a: in.d})
	}
	if a.cut {
		a.emit(inst{run: clamp, d: in.d, a: in.d})
	}
}

// flushed replaces sources by flushed copies, if the instruction flushes.
func (a *assembly) flushed(sources ...*int32) {
	for _, r := range sources {
		if a.flush && *r >= 0 {
			to := a.value()
			a.emit(inst{run: flush, d: to, a: *r})
			*r = to
		}
	}
}

// rounding takes the rounding modifier.
func (a *assembly) rounding() rounding {
	return oneOf(a, map[string]rounding{"rn": nearest, "rz": zero, "rm": down, "rp": up})
}

// pick returns the run function of a type, or records an error.
func (a *assembly) pick(k kind, runs map[kind]func(*warp, *inst)) func(*warp, *inst) {
	if k.integer() && !k.signed() {
		k = k.unsigned()
	}
	run := runs[k]
	a.unknownIf(run == nil)
	return run
}
