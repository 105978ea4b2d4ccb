package ptx

// module is a parsed PTX file. Names of registers and of functions' variables are resolved;
// names of functions and of the module's variables are not.
type module struct {
	name      string
	lines     []string
	variables []*variable
	functions map[string]*function
	order     []*function
}

// variable is memory with a name: of a module, of a function, or a parameter.
type variable struct {
	name    string
	space   space
	size    int // bytes; 0 if the launch sets it
	align   int
	extern  bool
	initial []byte   // of a module's; nil is zeros
	refs    []symref // addresses within initial
	line    int
}

// symref is an address of sym + plus to be written at a byte of an initial value.
type symref struct {
	at   int
	sym  string
	plus int64
}

// function is an entry, or a function that one calls.
type function struct {
	name    string
	entry   bool
	defined bool
	line    int
	returns []*variable
	params  []*variable
	locals  []*variable // declared in its body, in any space
	regs    []kind
	labels  int
	threads int // maximum per block; 0 if not given
	body    []statement
}

// statement is an instruction or, if label is not -1, a label.
type statement struct {
	line     int
	label    int
	guard    operand // a predicate, if its kind is register
	opcode   string
	operands []operand
	// Of a call.
	callee        string
	results, args []operand
}

type operandKind uint8

const (
	noOperand operandKind = iota
	register
	immediate
	floating // bits of a float64, or of a float32 if single is set
	symbol   // the address of a variable
	labelled // a label
	special  // a special register
	vector
	sink // _
)

// operand is an operand of an instruction. An address in brackets is a register, a symbol or a
// number, plus an offset.
type operand struct {
	kind    operandKind
	address bool
	negated bool
	single  bool
	reg     int    // of function.regs; of function.locals or -1 for a symbol; a label
	name    string // of a symbol or a special register
	bits    uint64
	plus    int64
	list    []operand
	second  *operand // q of p|q
}
