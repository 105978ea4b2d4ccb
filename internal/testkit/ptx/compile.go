package ptx

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of a kernel with the functions that it calls.
const (
	maxInstructions = 1 << 19
	maxCalls        = 32 // nested
	maxLocal        = 512 << 10
	maxParams       = 4352
	maxValues       = 1 << 16 // registers of a thread
)

// loaded is a module whose variables have addresses and whose entries run.
type loaded struct {
	*module
	globals map[string]*region
	shared  map[string]*variable
	kernels map[string]*kernel
}

// compiler compiles one entry, with its called functions inlined at each call.
//
// Design note: with frames, a call would exchange the registers of some lanes. Inlining is
// cheap because calls are rare, and needs no stack; recursion is an error.
type compiler struct {
	mod    *loaded
	k      *kernel
	code   []inst // targets and next are labels
	labels []int32
	line   int
	consts map[uint64]int32
	specs  map[string]int32
	vars   map[*variable]uint64
	places [3]uint64 // next address of shared, local, parameters
	calls  []string
	no     int32 // the predicate that never holds, plus 1
}

// frame is one inlined instance of a function.
type frame struct {
	f      *function
	regs   []int32 // of the warp's values, or of its masks for predicates
	labels int32   // first label of the compiler's
	end    int32   // label of a called function's return
	called bool
}

func (c *compiler) fail(format string, args ...any) {
	panic(&Error{Line: c.line, Detail: fmt.Sprintf(format, args...)})
}

// failIf calls fail if bad is true.
func (c *compiler) failIf(bad bool, format string, args ...any) {
	if bad {
		c.fail(format, args...)
	}
}

// compile makes the kernels of a module.
func (l *loaded) compile() (map[string]*kernel, error) {
	kernels := map[string]*kernel{}
	for _, f := range l.order {
		if f = l.functions[f.name]; !f.entry || !f.defined {
			continue
		}
		k, err := compile(l, f)
		if err != nil {
			return nil, err
		}
		kernels[f.name] = k
	}
	return kernels, nil
}

// on returns a copy of a kernel for a module with the same addresses. Its accesses are copies too,
// because they remember regions of their device.
func (k *kernel) on(l *loaded) *kernel {
	own := *k
	own.mod, own.code = l, slices.Clone(k.code)
	for i := range own.code {
		if m := own.code[i].mem; m != nil {
			m := *m
			own.code[i].mem = &m
		}
	}
	return &own
}

// compile makes a kernel of an entry.
func compile(mod *loaded, f *function) (k *kernel, err error) {
	defer mod.recovered(&err)
	c := &compiler{
		mod: mod, k: &kernel{name: f.name, mod: mod, threads: f.threads},
		line: f.line, consts: map[uint64]int32{}, specs: map[string]int32{}, vars: map[*variable]uint64{},
		places: [3]uint64{sharedBase, localBase, paramBase},
	}
	for _, v := range f.params {
		c.place(v, param)
	}
	if c.k.paramSize = int(c.places[2] - paramBase); c.k.paramSize > maxParams {
		c.fail("%d bytes of parameters, of at most %d", c.k.paramSize, maxParams)
	}
	c.inline(f, false)
	c.line = f.line
	c.emit(inst{flow: leave})
	c.k.code = arrange(c.code, c.labels)
	return c.k, nil
}

// value and mask allocate registers for numbers and for predicates.
func (c *compiler) value() int32 {
	c.k.values++
	c.failIf(c.k.values > maxValues, "more than %d registers, with those of the functions called", maxValues)
	return int32(c.k.values - 1)
}

func (c *compiler) mask() int32 {
	c.k.preds++
	return int32(c.k.preds - 1)
}

// constant returns the register of a number.
func (c *compiler) constant(bits uint64) int32 {
	r, ok := c.consts[bits]
	if !ok {
		r = c.value()
		c.consts[bits] = r
		c.k.constants = append(c.k.constants, fixedValue{r, bits})
	}
	return r
}

// special returns the register of a special register.
func (c *compiler) special(name string) int32 {
	if specialRegisters[name] == nil {
		c.fail("unknown register %s", name)
	}
	r, ok := c.specs[name]
	if !ok {
		r = c.value()
		c.specs[name] = r
		c.k.specials = append(c.k.specials, specialValue{r, name})
	}
	return r
}

// place assigns a variable's address, with gaps between variables that are not parameters.
func (c *compiler) place(v *variable, s space) uint64 {
	if at, ok := c.vars[v]; ok {
		return at
	}
	i := map[space]int{shared: 0, local: 1, param: 2}[s]
	align := max(uint64(v.align), 1)
	at := (c.places[i] + align - 1) &^ (align - 1)
	c.vars[v] = at
	c.places[i] = at + uint64(v.size)
	switch s {
	case shared:
		c.k.shared = append(c.k.shared, placed{v.name, at, v.size})
		c.k.sharedLen = (c.k.sharedLen+int(align)-1)&^(int(align)-1) + v.size
		c.places[i] += guard
	case local:
		c.k.locals = append(c.k.locals, placed{v.name, at, v.size})
		c.places[i] += guard
	case param:
		c.k.params = append(c.k.params, v)
		c.k.offsets = append(c.k.offsets, int(at-paramBase))
	}
	if c.places[1]-localBase > maxLocal+guard*uint64(len(c.k.locals)) || c.places[0] >= dynamicBase || c.places[1] >= paramBase {
		c.fail("too much memory for variables")
	}
	return at
}

// inline appends the code of f.
func (c *compiler) inline(f *function, called bool) *frame {
	fr := c.enter(f, called)
	c.body(fr)
	return fr
}

func (c *compiler) enter(f *function, called bool) *frame {
	fr := &frame{f: f, called: called, labels: int32(len(c.labels)), regs: make([]int32, len(f.regs))}
	for i, k := range f.regs {
		if k == pred {
			fr.regs[i] = c.mask()
		} else {
			fr.regs[i] = c.value()
		}
	}
	for range f.labels + 1 {
		c.labels = append(c.labels, -1)
	}
	fr.end = int32(len(c.labels) - 1)
	return fr
}

func (c *compiler) body(fr *frame) {
	for i := range fr.f.body {
		st := &fr.f.body[i]
		c.line = st.line
		if st.label >= 0 {
			c.labels[fr.labels+int32(st.label)] = int32(len(c.code))
			continue
		}
		c.statement(fr, st)
	}
	c.labels[fr.end] = int32(len(c.code))
}

// emit appends an instruction.
func (c *compiler) emit(in inst) {
	c.failIf(len(c.code) >= maxInstructions, "more than %d instructions, with those of the functions called", maxInstructions)
	in.line = int32(c.line)
	c.code = append(c.code, in)
}

// statement compiles one instruction, with additional ones if needed.
func (c *compiler) statement(fr *frame, st *statement) {
	from := len(c.code)
	if st.opcode == "call" || strings.HasPrefix(st.opcode, "call.") {
		c.failIf(st.guard.kind != noOperand, "a call with a guard is not supported")
		c.call(fr, st)
		return
	}
	name, rest, _ := strings.Cut(st.opcode, ".")
	f, ok := instructions[name]
	if !ok {
		c.fail("unknown instruction: %s", st.opcode)
	}
	a := &assembly{compiler: c, fr: fr, operands: st.operands, opcode: st.opcode}
	if rest != "" {
		a.mods = strings.Split(rest, ".")
	}
	f(a)
	a.finish()
	if st.guard.kind == noOperand {
		return
	}
	guard := fr.regs[st.guard.reg] + 1
	if st.guard.negated {
		guard = -guard
	}
	for i := from; i < len(c.code); i++ {
		in := &c.code[i]
		in.guard = guard
		if in.flow == jump {
			in.flow, in.next = branch, -1
		}
	}
}

// call inlines the code of a function. Caller and function share the parameters: variables of
// local memory.
func (c *compiler) call(fr *frame, st *statement) {
	f := c.mod.functions[st.callee]
	switch {
	case f == nil || f.entry:
		c.fail("a call of %s, which is not a function of the module", st.callee)
	case !f.defined:
		c.fail("a call of %s, which has no body", st.callee)
	case len(c.calls) >= maxCalls:
		c.fail("more than %d nested calls: recursion is not supported", maxCalls)
	case len(f.params) != len(st.args) || len(f.returns) != len(st.results):
		c.fail("a call of %s with other parameters than it has", st.callee)
	}
	line := c.line
	saved := map[*variable]uint64{}
	for _, v := range f.locals {
		if at, ok := c.vars[v]; ok && v.space != shared {
			saved[v] = at
			delete(c.vars, v)
		}
	}
	bind := func(given []operand, wanted []*variable) {
		for i, o := range given {
			c.failIf(o.kind != symbol || o.reg < 0, "a parameter of a call is not a variable of the caller")
			v := fr.f.locals[o.reg]
			c.failIf(v.size < wanted[i].size, "a parameter of %d bytes for one of %d", v.size, wanted[i].size)
			c.vars[wanted[i]] = c.place(v, local)
		}
	}
	bind(st.args, f.params)
	bind(st.results, f.returns)
	c.calls = append(c.calls, st.callee)
	c.inline(f, true)
	c.calls = c.calls[:len(c.calls)-1]
	for _, v := range f.locals {
		if v.space != shared {
			delete(c.vars, v)
		}
	}
	for v, at := range saved {
		c.vars[v] = at
	}
	c.line = line
}

// address returns the address and the space of a variable of fr's function or of the module.
func (c *compiler) address(fr *frame, o *operand) (uint64, space) {
	if o.reg >= 0 {
		v := fr.f.locals[o.reg]
		s := v.space
		if at, ok := c.vars[v]; ok {
			if s == param && at < paramBase {
				s = local
			}
			return at, s
		}
		if s == param {
			s = local
		}
		return c.place(v, s), s
	}
	if v := c.mod.shared[o.name]; v != nil {
		if v.extern {
			// All of them start at the same address.
			c.k.dynamic = dynamicBase
			return dynamicBase, shared
		}
		return c.place(v, shared), shared
	}
	if r := c.mod.globals[o.name]; r != nil {
		if r.fixed {
			return r.base, constant
		}
		return r.base, global
	}
	c.fail("no variable %s", o.name)
	return 0, generic
}
