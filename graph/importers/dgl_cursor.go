package importers

import (
	"encoding/binary"
	"fmt"

	"siafu/internal/npy"
)

// dglCursor reads a file from a byte on. Its first error is sticky: all later reads return 0.
type dglCursor struct {
	file *dglFile
	at   int
	err  error
}

func (c *dglCursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = c.file.bad("byte %d: %s", c.at, fmt.Sprintf(format, args...)).Then(dglTruncated)
	}
}

// take returns the next n bytes, or nil if fewer remain.
func (c *dglCursor) take(n uint64) []byte {
	if left := uint64(len(c.file.bytes) - c.at); c.err == nil && n > left {
		c.fail("%d bytes expected, %d left", n, left)
	}
	if c.err != nil {
		return nil
	}
	b := c.file.bytes[c.at : c.at+int(n)]
	c.at += int(n)
	return b
}

func (c *dglCursor) u64() uint64 {
	if b := c.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (c *dglCursor) i64() int64 { return int64(c.u64()) }

// magic reads the number with which the part called what begins.
func (c *dglCursor) magic(want uint64, what string) {
	at := c.at
	if got := c.u64(); c.err == nil && got != want {
		c.at = at
		c.fail("%s begins with %#x, expected %#x", what, got, want)
	}
}

// count reads the length of a list, which must be want.
func (c *dglCursor) count(what string, want uint64) {
	if n := c.u64(); c.err == nil && n != want {
		c.fail("%d %s, expected %d", n, what, want)
	}
}

// text reads a length and that number of bytes.
func (c *dglCursor) text() string { return string(c.take(c.u64())) }

// tensors reads a count, then pairs of a name and an array. what describes an array in messages
// until its name is known.
func (c *dglCursor) tensors(what string) (list []dglTensor) {
	n := c.u64()
	for i := uint64(0); i < n && c.err == nil; i++ {
		name := c.text()
		list = append(list, dglTensor{name, c.array(fmt.Sprintf("%s %.60q", what, name))})
	}
	return list
}

// Kinds of elements (DLPack's).
const (
	signed, unsigned, float, boolean = 0, 1, 2, 6
)

// array reads magic, 0, device (two of 4 bytes), dimensions (4), kind and bits (1 each), lanes
// (2), shape (8 each), bytes (8), elements. The elements are not copied.
func (c *dglCursor) array(name string) *npy.Array {
	c.magic(dglArrayMagic, name)
	b := c.take(24)
	if c.err != nil {
		return nil
	}
	dims, kind := binary.LittleEndian.Uint32(b[16:]), b[20:]
	kindOf, size := dglElement(kind[0], kind[1], binary.LittleEndian.Uint16(kind[2:]))
	if kindOf == "" {
		c.err = c.file.bad("%s has elements of kind %d with %d bits, which are not supported", name, kind[0], kind[1]).
			Then("convert it with float() or long() before saving")
		return nil
	}
	a := npy.Array{Type: kindOf, Shape: []int{}}
	held := uint64(len(c.file.bytes)-c.at) / size // no more elements than that
	count := uint64(1)
	for range dims {
		n := c.u64()
		if c.err != nil {
			return nil
		}
		if n > 0 && count > held/n || n > 1<<62 {
			c.fail("%s has a dimension of %d", name, n)
			return nil
		}
		count *= n
		a.Shape = append(a.Shape, int(n))
	}
	if bytes := c.u64(); c.err == nil && bytes != count*size {
		c.fail("%s has the shape %v and %d bytes", name, a.Shape, bytes)
	}
	a.Data = c.take(count * size)
	return a.Called(c.file.path + "[" + name + "]")
}

// dglElement returns NumPy's name of the element type, and its bytes; "" if unsupported.
func dglElement(kind, bits uint8, lanes uint16) (string, uint64) {
	letter, known := map[uint8]string{signed: "i", unsigned: "u", float: "f", boolean: "b"}[kind]
	size := uint64(bits) / 8
	switch {
	case !known || lanes != 1 || bits%8 != 0 || size&(size-1) != 0 || size < 1 || size > 8:
		return "", 0
	case kind == float && size < 2 || kind == boolean && size > 1:
		return "", 0
	case size == 1:
		return "|" + letter + "1", 1
	}
	return fmt.Sprintf("<%s%d", letter, size), size
}
