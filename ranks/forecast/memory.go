package forecast

import (
	"slices"

	"siafu/internal/mapped"
	"siafu/internal/size"
)

// Kind is the location of memory.
type Kind string

// The kinds of memory.
const (
	Mapped  Kind = "mapped"  // pages of a file, which the system can reclaim
	Array   Kind = "array"   // arrays outside the heap
	Scratch Kind = "scratch" // arrays that are freed before the first epoch
	Heap    Kind = "heap"    // Go's heap, an estimate
	Device  Kind = "device"  // arrays on a GPU, not in the host's memory
	Disk    Kind = "disk"    // arrays in the scratch file (--memory scratch=DIR)
)

// Term is a rank's memory for one purpose. Bytes is size.Most if the sum overflows.
type Term struct {
	Name  string `json:"name"`
	Kind  Kind   `json:"kind"`
	Bytes int64  `json:"bytes"`
}

// Memory lists the memory of a rank by purpose.
type Memory []Term

// add appends arrays, each rounded up to its allocated size.
func (m *Memory) add(name string, kind Kind, arrays ...int64) {
	total := int64(0)
	for _, bytes := range arrays {
		total = size.Sum(total, size.RoundUp(bytes, 64))
	}
	if total > 0 {
		*m = append(*m, Term{name, kind, total})
	}
}

// shares appends the arrays of a sketch, by purpose.
func (m *Memory) shares(kind Kind, a *mapped.Arena) {
	for _, s := range a.Shares() {
		m.add(s.Purpose, kind, s.Bytes)
	}
}

// floats returns the bytes of a float32 array with the given extents.
func floats(extent ...int64) int64 { return size.Product(4, size.Product(extent...)) }

// Of returns the memory of one kind.
func (m Memory) Of(k Kind) (bytes int64) {
	for _, t := range m {
		if t.Kind == k {
			bytes = size.Sum(bytes, t.Bytes)
		}
	}
	return bytes
}

// And returns the memory of two parts on one rank.
func (m Memory) And(other Memory) Memory {
	sum := slices.Clone(m)
	for _, t := range other {
		i := slices.IndexFunc(sum, func(have Term) bool { return have.Name == t.Name && have.Kind == t.Kind })
		if i < 0 {
			sum = append(sum, t)
			continue
		}
		sum[i].Bytes = size.Sum(sum[i].Bytes, t.Bytes)
	}
	return sum
}

// Peak returns the maximal resident memory. Scratch memory is freed before the first epoch
// touches its own arrays.
func (m Memory) Peak() int64 {
	always, training := size.Sum(m.Of(Mapped), m.Of(Heap)), int64(0)
	for _, t := range m {
		switch {
		case t.Kind != Array:
		case slices.Contains(epochs, t.Name):
			training = size.Sum(training, t.Bytes)
		default:
			always = size.Sum(always, t.Bytes)
		}
	}
	return size.Sum(always, max(training, m.Of(Scratch)))
}

// Certain returns the memory that every run needs: arrays that are filled in every epoch, or
// cached, and the arrays of intervals.
func (m Memory) Certain() int64 {
	bytes := m.Of(Array)
	for _, t := range m {
		if t.Name == intervals {
			bytes = size.Sum(bytes, t.Bytes)
		}
	}
	return bytes
}
