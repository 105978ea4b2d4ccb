package device

import (
	"encoding/binary"
	"math"
)

// Args are the parameters of a launch, each at its natural alignment, as PTX lays
// them out. The zero value has none. A caller that launches often keeps one and
// resets it: it then allocates nothing.
type Args struct {
	bytes   []byte
	offsets []int
}

// Reset removes all parameters. It retains their memory.
func (a *Args) Reset() *Args {
	a.bytes, a.offsets = a.bytes[:0], a.offsets[:0]
	return a
}

// Bytes returns the parameters, little-endian, with zeros between them.
func (a *Args) Bytes() []byte { return a.bytes }

// Offsets returns the offset of each parameter in Bytes.
func (a *Args) Offsets() []int { return a.offsets }

// Ptr adds an address.
func (a *Args) Ptr(p Ptr) *Args { return a.Uint64(uint64(p)) }

// Uint32 adds a number of 4 bytes, as do Int32 and Float32.
func (a *Args) Uint32(x uint32) *Args {
	a.align(4)
	a.bytes = binary.LittleEndian.AppendUint32(a.bytes, x)
	return a
}

// Int32 adds a signed number of 4 bytes.
func (a *Args) Int32(x int32) *Args { return a.Uint32(uint32(x)) }

// Float32 adds a float of 4 bytes.
func (a *Args) Float32(x float32) *Args { return a.Uint32(math.Float32bits(x)) }

// Uint64 adds a number of 8 bytes, as do Int64 and Float64.
func (a *Args) Uint64(x uint64) *Args {
	a.align(8)
	a.bytes = binary.LittleEndian.AppendUint64(a.bytes, x)
	return a
}

// Int64 adds a signed number of 8 bytes.
func (a *Args) Int64(x int64) *Args { return a.Uint64(uint64(x)) }

// Float64 adds a float of 8 bytes.
func (a *Args) Float64(x float64) *Args { return a.Uint64(math.Float64bits(x)) }

// Struct adds the bytes of a struct with that alignment, a power of two.
func (a *Args) Struct(b []byte, alignment int) *Args {
	a.align(alignment)
	a.bytes = append(a.bytes, b...)
	return a
}

// align begins a parameter at the next multiple of n.
func (a *Args) align(n int) {
	for len(a.bytes)%n != 0 {
		a.bytes = append(a.bytes, 0)
	}
	a.offsets = append(a.offsets, len(a.bytes))
}
