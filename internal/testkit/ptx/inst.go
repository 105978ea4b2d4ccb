package ptx

import "unsafe"

// lanes is the number of threads of a warp.
const lanes = 32

// values holds a register of all threads of a warp. An instruction reads and writes the bytes
// of its type; results of loads and conversions fill all eight.
type values = [lanes]uint64

// number has the types of register values.
type number interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// get returns lane l of r. Hosts are little-endian, as devices are.
func get[T number](r *values, l uint8) T { return *(*T)(unsafe.Pointer(&r[l&(lanes-1)])) }

// put sets lane l of r.
func put[T number](r *values, l uint8, x T) { *(*T)(unsafe.Pointer(&r[l&(lanes-1)])) = x }

// unary computes d = f(a) in each active lane. The compiler inlines it with f.
func unary[S, D number](w *warp, in *inst, f func(x S) D) {
	d, a := &w.regs[in.d], &w.regs[in.a]
	for _, l := range w.lanes {
		put(d, l, f(get[S](a, l)))
	}
}

// flow is the control flow after an instruction.
type flow uint8

const (
	onward    flow = iota // the next one
	jump                  // target
	branch                // target if the guard holds, else next
	leave                 // exit of the threads
	meetBlock             // a barrier of all threads of the block
	meetWarp              // run once all named lanes have arrived
	trapped               // the launch fails
)

// inst is a compiled instruction. Registers are indices into a warp's values, predicates into
// its masks. Constants, addresses of variables and special registers have their own registers.
type inst struct {
	run    func(*warp, *inst)
	mem    *access
	list   []int32 // registers of a vector
	imm    uint64
	target int32
	next   int32
	line   int32
	guard  int32 // predicate + 1, negative if negated, 0 for none
	d, a   int32
	b, c   int32
	p, q   int32 // predicates written; -1 for none
	r      int32 // predicate read
	steps  int32 // instructions of the block that a jump or branch ends
	flow   flow
	op     op
	kind   kind
	from   kind // of the source of a conversion
	round  rounding
	negate bool // of r
	join   op   // of r with the outcome of a comparison
	cut    bool // saturates
}

// op distinguishes instructions with the same run function.
type op uint8

const (
	opNone op = iota
	opAdd
	opSub
	opMul
	opMulHi
	opDiv
	opRem
	opMin
	opMax
	opNeg
	opAbs
	opAnd
	opOr
	opXor
	opNot
	opCnot
	opShl
	opShr
	opPopc
	opClz
	opBrev
	opBfind
	opSqrt
	opRcp
	opRsqrt
	opEx2
	opLg2
	opSin
	opCos
	opTanh
	opCopysign
	opExch
	opCas
	opInc
	opDec
	opEq
	opNe
	opLt
	opLe
	opGt
	opGe
	opEqu
	opNeu
	opLtu
	opLeu
	opGtu
	opGeu
	opNum
	opNan
	opAll
	opAny
	opUni
	opBallot
	opUp
	opDown
	opBfly
	opIdx
	opPopcBar
)
