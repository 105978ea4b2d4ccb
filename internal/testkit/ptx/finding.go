package ptx

import "fmt"

// Kind is the kind of a kernel's error.
type Kind uint8

const (
	// OutOfBounds is an access outside of all allocations and variables, to freed
	// memory, or a write to constants and parameters.
	OutOfBounds Kind = iota + 1
	// Misaligned is an access whose address is no multiple of its size.
	Misaligned
	// Uninitialised is a read of unwritten memory.
	Uninitialised
	// Race is a pair of accesses to a byte by different threads, at least one a write, not
	// both atomic, without a barrier or launch between them.
	Race
	// DivergentBarrier is a barrier that not all threads of a block reach.
	DivergentBarrier
	// InactiveLane is a warp instruction that names lanes which do not reach it, or reads the
	// value of such a lane.
	InactiveLane
	// Endless is a warp that ran more instructions than a launch may.
	Endless
	// Trapped is a trap instruction.
	Trapped
	// BadLaunch is a launch of a shape, or with parameters, that the function or the
	// device does not have.
	BadLaunch
	// HostMemory is a write, copy or unpin of host memory during a copy of it.
	HostMemory
)

func (k Kind) String() string {
	names := [...]string{"", "out of bounds", "misaligned", "uninitialised", "race",
		"divergent barrier", "inactive lane", "endless", "trap", "launch", "host memory"}
	return names[k]
}

// Finding is an error of a launch or a copy, with its position.
type Finding struct {
	Kind          Kind
	Module        string
	Kernel        string // empty of a copy
	Line          int    // of the PTX
	Text          string // the instruction
	Block, Thread [3]int
	Address       uint64 // of the first byte of the access
	Bytes         int
	Allocation    string // the memory accessed, or the allocation next to it
	Detail        string
}

func (f *Finding) Error() string {
	s := "ptx: " + f.Kind.String() + ": " + f.Detail
	if f.Bytes > 0 {
		s += fmt.Sprintf(": %d bytes at %#x", f.Bytes, f.Address)
	}
	if f.Allocation != "" {
		s += ", " + f.Allocation
	}
	if f.Kernel != "" {
		s += ": kernel " + f.Kernel
	}
	if f.Line > 0 {
		s += fmt.Sprintf(", block %v, thread %v: %s:%d: %q", f.Block, f.Thread, f.Module, f.Line, f.Text)
	}
	return s
}
