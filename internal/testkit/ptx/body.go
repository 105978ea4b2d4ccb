package ptx

import (
	"math"
	"strconv"
	"strings"
)

// function reads a function after .entry or .func.
func (p *parser) function(entry bool) {
	f := &function{entry: entry, line: p.line()}
	p.f, p.scopes, p.fixes = f, nil, nil
	p.open()
	if p.peek() == "(" {
		f.returns = p.parameters()
	}
	f.name = p.name()
	if p.peek() == "(" {
		f.params = p.parameters()
	}
	p.limits()
	if f.defined = !p.accept(";"); f.defined {
		p.expect("{")
		p.block()
		p.resolve()
	}
	old := p.mod.functions[f.name]
	if old != nil && old.defined {
		p.failIf(f.defined, "a second function %s", f.name)
		return
	}
	p.mod.functions[f.name] = f
	p.mod.order = append(p.mod.order, f)
}

// limits reads the limits of threads and registers of a function.
func (p *parser) limits() {
	for {
		switch t := p.peek(); t {
		case ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxnreg":
			p.at++
			n := p.count(1 << 20)
			for p.accept(",") {
				n *= min(p.count(1<<20), 1<<20/max(n, 1))
			}
			if t == ".maxntid" || t == ".reqntid" {
				p.f.threads = n
			}
		case ".noreturn":
			p.at++
		case ".pragma":
			p.skipTo(";")
		default:
			return
		}
	}
}

// parameters reads a list in parentheses.
func (p *parser) parameters() []*variable {
	var list []*variable
	p.expect("(")
	for !p.accept(")") {
		p.expect(".param")
		align, k, lanes := p.typed()
		v := p.variable(param, align, k, lanes)
		p.declare(v)
		list = append(list, v)
		if p.peek() != ")" {
			p.expect(",")
		}
	}
	return list
}

// declare makes v known in the innermost scope.
func (p *parser) declare(v *variable) {
	p.scope().vars[v.name] = len(p.f.locals)
	p.f.locals = append(p.f.locals, v)
}

func (p *parser) scope() *scope { return p.scopes[len(p.scopes)-1] }

func (p *parser) open() {
	s := &scope{regs: map[string]int{}, vars: map[string]int{}, labels: map[string]int{}}
	if len(p.scopes) > 0 {
		s.parent = p.scope()
	}
	p.failIf(len(p.scopes) > maxDepth, "more than %d braces within each other", maxDepth)
	p.scopes = append(p.scopes, s)
}

// block reads statements up to the brace that ends them.
func (p *parser) block() {
	p.open()
	for !p.accept("}") {
		p.statement()
	}
	p.scopes = p.scopes[:len(p.scopes)-1]
}

// statement reads a declaration, a label, or an instruction.
func (p *parser) statement() {
	switch t := p.peek(); t {
	case "{":
		p.at++
		p.block()
	case ".reg":
		p.at++
		p.registers()
	case ".shared", ".local", ".param", ".global", ".const":
		p.at++
		for _, v := range p.variables(spaces[t[1:]], false) {
			if v.space == global || v.space == constant {
				p.mod.variables = append(p.mod.variables, v)
				continue
			}
			p.declare(v)
		}
	default:
		if p.ignored() {
			return
		}
		if p.list[p.at+min(1, len(p.list)-1-p.at)].text == ":" {
			p.label()
			return
		}
		p.instruction()
	}
}

// label declares a label in its scope.
func (p *parser) label() {
	s, name := p.scope(), p.name()
	if _, twice := s.labels[name]; twice {
		p.fail("a second label %s", name)
	}
	s.labels[name] = p.f.labels
	p.f.body = append(p.f.body, statement{line: p.line(), label: p.f.labels})
	p.f.labels++
	p.expect(":")
}

// resolve finds the labels that instructions named.
func (p *parser) resolve() {
uses:
	for _, u := range p.fixes {
		for s := u.s; s != nil; s = s.parent {
			if id, ok := s.labels[u.name]; ok {
				p.f.body[u.stmt].operands[u.op].reg = id
				continue uses
			}
		}
		panic(&Error{Line: u.line, Detail: "no label " + u.name})
	}
}

// registers reads ".b32 %r<9>, %x;".
func (p *parser) registers() {
	t := p.next()
	k := kinds[strings.TrimPrefix(t, ".")]
	if k == none || t[0] != '.' {
		p.at--
		p.fail("%q is not a register type", t)
	}
	for {
		name := p.name()
		if p.accept("<") {
			n := p.count(maxRegisters)
			p.expect(">")
			for i := range n {
				p.register(name+strconv.Itoa(i), k)
			}
		} else {
			p.register(name, k)
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
}

func (p *parser) register(name string, k kind) {
	p.failIf(len(p.f.regs) >= maxRegisters, "more than %d registers", maxRegisters)
	p.scope().regs[name] = len(p.f.regs)
	p.f.regs = append(p.f.regs, k)
}

// instruction reads "@p opcode operands;".
func (p *parser) instruction() {
	st := statement{label: -1}
	if p.accept("@") {
		negated := p.accept("!")
		st.guard = p.value()
		st.guard.negated = negated
		if g := &st.guard; g.kind != register || p.f.regs[g.reg] != pred {
			p.fail("the guard is not a predicate")
		}
	}
	st.line = p.line()
	st.opcode = p.name()
	if st.opcode == "call" || strings.HasPrefix(st.opcode, "call.") {
		p.call(&st)
	} else {
		p.operands(&st)
	}
	p.f.body = append(p.f.body, st)
}

// operands reads the operands of an instruction that is not a call.
func (p *parser) operands(st *statement) {
	for !p.accept(";") {
		o := p.operand()
		if o.kind == symbol && (st.opcode == "bra" || strings.HasPrefix(st.opcode, "bra.")) {
			p.fixes = append(p.fixes, labelUse{p.scope(), o.name, st.line, len(p.f.body), len(st.operands)})
			o = operand{kind: labelled}
		}
		st.operands = append(st.operands, o)
		p.failIf(len(st.operands) > 16, "more than 16 operands")
		if p.peek() != ";" {
			p.expect(",")
		}
	}
}

// call reads "(results), name, (arguments);".
func (p *parser) call(st *statement) {
	if p.peek() == "(" {
		st.results = p.group(")")
		p.expect(",")
	}
	st.callee = p.name()
	if p.accept(",") {
		st.args = p.group(")")
	}
	p.expect(";")
}

// group reads operands between braces or parentheses.
func (p *parser) group(end string) []operand {
	p.at++
	var list []operand
	for !p.accept(end) {
		list = append(list, p.value())
		p.failIf(len(list) > 256, "more than 256 operands")
		if p.peek() != end {
			p.expect(",")
		}
	}
	return list
}

// operand reads one operand, with an address's brackets and the second of a pair.
func (p *parser) operand() operand {
	switch {
	case p.peek() == "{":
		return operand{kind: vector, list: p.group("}")}
	case p.accept("["):
		o := p.value()
		o.address = true
		if o.kind == register || o.kind == symbol {
			o.plus += p.plus()
		}
		p.expect("]")
		return o
	case p.accept("!"):
		o := p.value()
		o.negated = true
		return o
	}
	o := p.value()
	if p.accept("|") {
		q := p.value()
		o.second = &q
	}
	return o
}

// plus reads the offset of an address.
func (p *parser) plus() int64 {
	if p.accept("+") || p.peek() == "-" {
		return p.number()
	}
	return 0
}

// value reads a register, a number, or a name.
func (p *parser) value() operand {
	negative := p.accept("-")
	t := p.next()
	if o, ok := literal(t, negative); ok {
		return o
	}
	if negative || !wordByte(t[0]) || t[0] == '.' || t[0] >= '0' && t[0] <= '9' {
		p.at--
		p.fail("%q where an operand was expected", t)
	}
	if t == "_" {
		return operand{kind: sink}
	}
	if p.f == nil {
		return operand{kind: symbol, name: t, reg: -1, plus: p.plus()}
	}
	for i := len(p.scopes) - 1; i >= 0; i-- {
		if r, ok := p.scopes[i].regs[t]; ok {
			return operand{kind: register, reg: r}
		}
		if v, ok := p.scopes[i].vars[t]; ok {
			return operand{kind: symbol, name: t, reg: v, plus: p.plus()}
		}
	}
	if t[0] == '%' {
		return operand{kind: special, name: t}
	}
	if t == "WARP_SZ" {
		return operand{kind: immediate, bits: lanes}
	}
	return operand{kind: symbol, name: t, reg: -1, plus: p.plus()}
}

// literal reads a number: 12, 0x1F, 0f3F800000, 0d3FF0000000000000, 1.5.
func literal(t string, negative bool) (operand, bool) {
	if t[0] < '0' || t[0] > '9' {
		return operand{}, false
	}
	if n, ok := integer(t); ok {
		if negative {
			n = -n
		}
		return operand{kind: immediate, bits: n}, true
	}
	if len(t) > 2 && strings.ContainsAny(t[1:2], "fFdD") && t[0] == '0' {
		single := t[1] == 'f' || t[1] == 'F'
		width := map[bool]int{true: 8, false: 16}[single]
		n, err := strconv.ParseUint(t[2:], 16, 64)
		if err != nil || len(t) != 2+width {
			return operand{}, false
		}
		if negative {
			n ^= 1 << (4*width - 1)
		}
		return operand{kind: floating, single: single, bits: n}, true
	}
	x, err := strconv.ParseFloat(t, 64)
	if err != nil || strings.ContainsAny(t, "_xXpP") {
		return operand{}, false
	}
	if negative {
		x = -x
	}
	return operand{kind: floating, bits: math.Float64bits(x)}, true
}
