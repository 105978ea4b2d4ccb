// Package avx holds the inner loops of package kernels in assembly, for
// AVX-512 and for AVX2 with FMA, and the loops around them that divide rows and
// columns into blocks for a routine.
//
// Both instruction sets and the plain Go form in package kernels do the same operations on an element in
// the same order, so their results have the same bits. In products, a multiplication and the
// addition after it are rounded once: FMA and the functions of fma.go do so in Go on every processor.
//
// Package gen generates the assembly with avo. Callers must check all lengths. On a machine or an
// architecture without these instructions, and under the race detector, Best returns None, and no
// method may be called.
package avx

//go:generate go run ./gen -part attention -out asm_attention_amd64.s -stubs asm_attention_amd64.go -pkg avx
//go:generate go run ./gen -part choose -out asm_choose_amd64.s -stubs asm_choose_amd64.go -pkg avx
//go:generate go run ./gen -part coded -out asm_coded_amd64.s -stubs asm_coded_amd64.go -pkg avx
//go:generate go run ./gen -part elu -out asm_elu_amd64.s -stubs asm_elu_amd64.go -pkg avx
//go:generate go run ./gen -part gates -out asm_gates_amd64.s -stubs asm_gates_amd64.go -pkg avx
//go:generate go run ./gen -part gather -out asm_gather_amd64.s -stubs asm_gather_amd64.go -pkg avx
//go:generate go run ./gen -part lists -out asm_lists_amd64.s -stubs asm_lists_amd64.go -pkg avx
//go:generate go run ./gen -part maxima -out asm_maxima_amd64.s -stubs asm_maxima_amd64.go -pkg avx
//go:generate go run ./gen -part multiply -out asm_multiply_amd64.s -stubs asm_multiply_amd64.go -pkg avx
//go:generate go run ./gen -part packed -out asm_packed_amd64.s -stubs asm_packed_amd64.go -pkg avx
//go:generate go run ./gen -part pairs -out asm_pairs_amd64.s -stubs asm_pairs_amd64.go -pkg avx
//go:generate go run ./gen -part quantise -out asm_quantise_amd64.s -stubs asm_quantise_amd64.go -pkg avx
//go:generate go run ./gen -part random -out asm_random_amd64.s -stubs asm_random_amd64.go -pkg avx
//go:generate go run ./gen -part rows -out asm_rows_amd64.s -stubs asm_rows_amd64.go -pkg avx
//go:generate go run ./gen -part softmax -out asm_softmax_amd64.s -stubs asm_softmax_amd64.go -pkg avx
//go:generate go run ./gen -part step -out asm_step_amd64.s -stubs asm_step_amd64.go -pkg avx
//go:generate go run ./gen -part zeros -out asm_zeros_amd64.s -stubs asm_zeros_amd64.go -pkg avx

// Set is an instruction set, ordered by preference.
type Set int

// The instruction sets.
const (
	None Set = iota
	AVX2
	AVX512
)

func (s Set) String() string { return [...]string{"go", "avx2", "avx512"}[s] }
