package ptx

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"sync"
)

// Limits of a module, so that a hostile text ends in an error.
const (
	maxText      = 32 << 20
	maxRegisters = 1 << 17
	maxBytes     = 1 << 30
	maxInitial   = 1 << 24
	maxDepth     = 64
)

// parser reads the tokens of a module from front to back. The first error ends it.
type parser struct {
	list []token
	at   int
	mod  *module
	f    *function
	// Scopes of the current function, the innermost last.
	scopes []*scope
	fixes  []labelUse
}

// scope has the names declared between two braces.
type scope struct {
	parent *scope
	regs   map[string]int
	vars   map[string]int
	labels map[string]int
}

// labelUse is an operand that names a label that may still follow.
type labelUse struct {
	s        *scope
	name     string
	line     int
	stmt, op int
}

// modules are parsed modules by name and text: each device of a process loads the same programs.
// A module does not change after it is parsed. Its kernels contain the addresses of its variables,
// which a device gives it in a fixed order, so that they are the same on the next device.
type modules struct {
	mu       sync.Mutex
	parsed   map[[2]string]*module
	compiled map[*module]compiled
}

// compiled contains the kernels of a module whose variables have given addresses.
type compiled struct {
	addresses map[string]uint64
	kernels   map[string]*kernel
}

var cached modules

// maxCached is more than the programs of a process, and bounds the memory for generated texts.
const maxCached = 64

// parse parses the text of a module, or returns the module that the same text gave before.
func (c *modules) parse(name, text string) (*module, error) {
	source := [2]string{name, text}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.parsed[source]; m != nil {
		return m, nil
	}
	m, err := parse(name, text)
	if err != nil {
		return nil, err
	}
	if c.parsed == nil || len(c.parsed) == maxCached {
		c.parsed, c.compiled = map[[2]string]*module{}, map[*module]compiled{}
	}
	c.parsed[source] = m
	return m, nil
}

// compile compiles the entries of a module, or copies the kernels that the same addresses gave
// before.
func (c *modules) compile(l *loaded) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	addresses := make(map[string]uint64, len(l.globals))
	for name, r := range l.globals {
		addresses[name] = r.base
	}
	known := c.compiled[l.module]
	if known.kernels == nil || !maps.Equal(known.addresses, addresses) {
		kernels, err := l.compile()
		if err != nil {
			return err
		}
		known = compiled{addresses, kernels}
		c.compiled[l.module] = known
	}
	for name, k := range known.kernels {
		l.kernels[name] = k.on(l)
	}
	return nil
}

// parse parses the text of a module.
func parse(name, text string) (m *module, err error) {
	m = &module{name: name, lines: strings.Split(text, "\n"), functions: map[string]*function{}}
	defer m.recovered(&err)
	if len(text) > maxText {
		panic(&Error{Line: 1, Detail: fmt.Sprintf("more than %d bytes", maxText)})
	}
	list, bad := tokens(text)
	if bad != nil {
		panic(bad)
	}
	p := &parser{list: list, mod: m}
	for p.peek() != "" {
		p.declaration()
	}
	return m, nil
}

// recovered sets err to the Error that the parser or the compiler panicked with. It must be
// deferred.
func (m *module) recovered(err *error) {
	switch p := recover().(type) {
	case nil:
	case *Error:
		*err = m.located(p)
	default:
		panic(p)
	}
}

// located names the module and quotes the line of e.
func (m *module) located(e *Error) *Error {
	e.Module, e.Text = m.name, m.text(e.Line)
	return e
}

// text returns a line of the module.
func (m *module) text(line int) string {
	if line < 1 || line > len(m.lines) {
		return ""
	}
	text := strings.Join(strings.Fields(m.lines[line-1]), " ")
	return text[:min(len(text), 200)]
}

func (p *parser) peek() string { return p.list[p.at].text }
func (p *parser) line() int    { return p.list[p.at].line }

func (p *parser) fail(format string, args ...any) {
	panic(&Error{Line: p.line(), Detail: fmt.Sprintf(format, args...)})
}

// failIf calls fail if bad is true.
func (p *parser) failIf(bad bool, format string, args ...any) {
	if bad {
		p.fail(format, args...)
	}
}

// next takes a token; there is always one more.
func (p *parser) next() string {
	t := p.list[p.at].text
	p.failIf(t == "", "unexpected end of the text")
	p.at++
	return t
}

// accept takes the next token if it is text.
func (p *parser) accept(text string) bool {
	if p.peek() != text {
		return false
	}
	p.at++
	return true
}

func (p *parser) expect(text string) {
	if !p.accept(text) {
		p.fail("%q where %q was expected", p.peek(), text)
	}
}

// name takes the name of something.
func (p *parser) name() string {
	t := p.peek()
	if t == "" || !wordByte(t[0]) || t[0] == '.' || t[0] >= '0' && t[0] <= '9' {
		p.fail("%q where a name was expected", t)
	}
	return p.next()
}

// number takes an integer.
func (p *parser) number() int64 {
	negative := p.accept("-")
	t := p.peek()
	n, ok := integer(t)
	if !ok {
		p.fail("%q where a number was expected", t)
	}
	p.at++
	if negative {
		return -int64(n)
	}
	return int64(n)
}

// count takes an integer that is not negative and not beyond limit.
func (p *parser) count(limit int) int {
	n := p.number()
	if n < 0 || n > int64(limit) {
		p.at--
		p.fail("%d is not in 0..%d", n, limit)
	}
	return int(n)
}

// integer reads a literal of C.
func integer(t string) (uint64, bool) {
	if t == "" || t[0] < '0' || t[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimRight(t, "Uu"), 0, 64)
	return n, err == nil
}

// declaration reads a directive, a variable or a function of the module.
func (p *parser) declaration() {
	extern := false
	for {
		switch t := p.peek(); t {
		case ".version", ".target", ".address_size":
			p.header()
			return
		case ".section":
			p.skipTo("{")
			p.skipTo("}")
			return
		case ".extern":
			extern = true
			p.at++
		case ".visible", ".weak", ".common":
			p.at++
		case ".entry", ".func":
			p.at++
			p.function(t == ".entry")
			return
		case ".global", ".const", ".shared":
			p.at++
			p.f, p.scopes = nil, nil
			p.mod.variables = append(p.mod.variables, p.variables(spaces[t[1:]], extern)...)
			return
		default:
			if !p.ignored() {
				p.fail("unknown directive %q", t)
			}
			return
		}
	}
}

// header reads a line about the whole module.
func (p *parser) header() {
	if !p.accept(".address_size") {
		p.skipLine()
		return
	}
	if n := p.number(); n != 64 {
		p.at--
		p.fail("addresses of %d bits: only 64 are supported", n)
	}
}

// ignored skips a directive without effect, if the next token starts one.
func (p *parser) ignored() bool {
	switch p.peek() {
	case ".file", ".loc":
		p.skipLine()
	case ".pragma", ";":
		p.skipTo(";")
	default:
		return false
	}
	return true
}

func (p *parser) skipLine() {
	for line := p.line(); p.peek() != "" && p.line() == line; {
		p.at++
	}
}

func (p *parser) skipTo(end string) {
	for !p.accept(end) {
		p.next()
	}
}

// variables reads ".align 4 .b8 a[16], b;" after the space.
func (p *parser) variables(s space, extern bool) []*variable {
	var list []*variable
	align, kind, lanes := p.typed()
	for {
		v := p.variable(s, align, kind, lanes)
		v.extern = extern
		list = append(list, v)
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
	return list
}

// typed reads the part of a declaration before the variable's name.
func (p *parser) typed() (align int, k kind, lanes int) {
	lanes = 1
	for {
		t := p.peek()
		switch {
		case t == ".align":
			p.at++
			if align = p.count(1 << 12); align == 0 || align&(align-1) != 0 {
				p.fail("the alignment is not a power of two")
			}
		case t == ".v2":
			p.at++
			lanes = 2
		case t == ".v4":
			p.at++
			lanes = 4
		case t == ".ptr" || t == ".global" || t == ".const" || t == ".shared" || t == ".local":
			p.at++
		default:
			if k = kinds[strings.TrimPrefix(t, ".")]; k == none || k == pred || t[0] != '.' {
				p.fail("%q is not a variable type", t)
			}
			p.at++
			return align, k, lanes
		}
	}
}

// variable reads the name, extents and initial value of one.
func (p *parser) variable(s space, align int, k kind, lanes int) *variable {
	// A parameter that is a pointer has its attributes after its type.
	for strings.HasPrefix(p.peek(), ".") {
		if p.next() == ".align" {
			p.count(1 << 12)
		}
	}
	v := &variable{line: p.line(), name: p.name(), space: s, align: align, size: k.size() * lanes}
	if align == 0 {
		v.align = v.size
	}
	for p.accept("[") {
		if p.accept("]") {
			v.size = 0
			continue
		}
		n := p.count(maxBytes)
		p.failIf(n > 0 && v.size > maxBytes/n, "more than %d bytes", maxBytes)
		v.size *= n
		p.expect("]")
	}
	if p.accept("=") {
		p.initial(v, k)
	}
	return v
}

// initial reads the initial value of v.
func (p *parser) initial(v *variable, k kind) {
	if s := v.space; s != global && s != constant {
		p.fail("an initial value of a %v variable", s)
	}
	depth := 0
	for {
		for p.accept("{") {
			depth++
		}
		p.element(v, k)
		for depth > 0 && p.accept("}") {
			depth--
		}
		if depth == 0 || !p.accept(",") {
			break
		}
	}
	p.failIf(depth != 0, "braces that do not match")
	switch {
	case v.size == 0:
		v.size = len(v.initial)
	case len(v.initial) > v.size:
		p.fail("%d bytes of initial value for %d", len(v.initial), v.size)
	}
}

// element appends one number, or the address of a variable.
func (p *parser) element(v *variable, k kind) {
	p.failIf(len(v.initial) > maxInitial, "more than %d bytes of initial value", maxInitial)
	var b [8]byte
	wrapped := p.accept("generic")
	if wrapped {
		p.expect("(")
	}
	o := p.value()
	if wrapped {
		p.expect(")")
	}
	switch {
	case o.kind == symbol && k.size() == 8:
		v.refs = append(v.refs, symref{at: len(v.initial), sym: o.name, plus: o.plus})
	case o.kind == immediate || o.kind == floating:
		binary.LittleEndian.PutUint64(b[:], o.constant(k))
	default:
		p.fail("an initial value that is neither number nor address")
	}
	v.initial = append(v.initial, b[:k.size()]...)
}

// constant returns a number converted to kind k.
func (o *operand) constant(k kind) uint64 {
	switch {
	case o.kind == immediate && k == f32:
		return uint64(math.Float32bits(float32(int64(o.bits))))
	case o.kind == immediate && k == f64:
		return math.Float64bits(float64(int64(o.bits)))
	case o.kind == floating && o.single && k == f64:
		return math.Float64bits(float64(math.Float32frombits(uint32(o.bits))))
	case o.kind == floating && !o.single && k == f32:
		return uint64(math.Float32bits(float32(math.Float64frombits(o.bits))))
	}
	return o.bits
}
