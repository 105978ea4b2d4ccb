package arrayfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"reflect"

	"siafu/internal/mapped"
)

const (
	magic      = "SIAFUARR"
	version    = 1
	page       = 4096
	entryBytes = 64
	maxArrays  = page/entryBytes - 1
	nameBytes  = 32
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// elemType is the encoding of an element type.
type elemType uint32

// elemTypes is indexed by elemType; 0 is none.
var elemTypes = [...]struct {
	kind reflect.Kind
	size int64
}{
	1: {reflect.Uint8, 1}, 2: {reflect.Int8, 1}, 3: {reflect.Uint16, 2},
	4: {reflect.Int32, 4}, 5: {reflect.Uint32, 4}, 6: {reflect.Int64, 8},
	7: {reflect.Uint64, 8}, 8: {reflect.Float32, 4}, 9: {reflect.Float64, 8},
}

func (t elemType) String() string {
	if t > 0 && int(t) < len(elemTypes) {
		return elemTypes[t].kind.String()
	}
	return fmt.Sprintf("unknown type %d", uint32(t))
}

func typeOf[T mapped.Elem]() elemType {
	kind := reflect.TypeFor[T]().Kind()
	for i, e := range elemTypes {
		if i > 0 && e.kind == kind {
			return elemType(i)
		}
	}
	panic("arrayfile: element type without a number")
}

// entry describes one array.
type entry struct {
	name   string
	typ    elemType
	crc    uint32
	count  int64
	offset int64
}

func (e entry) bytes() int64 { return e.count * elemTypes[e.typ].size }

// header is the decoded first page.
type header struct {
	kind    string
	length  int64
	entries []entry
}

func align(n int64) int64 { return (n + page - 1) / page * page }

// encode returns the header page and its checksum.
func (h header) encode() ([]byte, uint32) {
	b := make([]byte, page)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], version)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(h.entries)))
	copy(b[16:16+nameBytes], h.kind)
	binary.LittleEndian.PutUint64(b[48:], uint64(h.length))
	for i, e := range h.entries {
		at := b[64+i*entryBytes:]
		copy(at[:nameBytes], e.name)
		binary.LittleEndian.PutUint32(at[32:], uint32(e.typ))
		binary.LittleEndian.PutUint32(at[36:], e.crc)
		binary.LittleEndian.PutUint64(at[40:], uint64(e.count))
		binary.LittleEndian.PutUint64(at[48:], uint64(e.offset))
	}
	crc := crc32.Checksum(b, castagnoli)
	binary.LittleEndian.PutUint32(b[56:], crc)
	return b, crc
}

// decode reads a header page of a file of the given length. The error says
// what is wrong, without the file's name.
func decode(b []byte, length int64) (header, uint32, error) {
	if len(b) < page {
		return header{}, 0, fmt.Errorf("it has %d bytes, fewer than the %d of a header", length, page)
	}
	if string(b[:8]) != magic {
		return header{}, 0, fmt.Errorf("it begins with %q, expected %q", b[:8], magic)
	}
	crc := binary.LittleEndian.Uint32(b[56:])
	copied := append([]byte(nil), b[:page]...)
	clear(copied[56:60])
	if got := crc32.Checksum(copied, castagnoli); got != crc {
		return header{}, 0, fmt.Errorf("header checksum %08x instead of %08x", got, crc)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return header{}, 0, fmt.Errorf("its format version is %d, this program reads %d", v, version)
	}
	h := header{kind: text(b[16 : 16+nameBytes]), length: int64(binary.LittleEndian.Uint64(b[48:]))}
	if h.length != length {
		return header{}, 0, fmt.Errorf("it has %d bytes, but its header has %d", length, h.length)
	}
	n := binary.LittleEndian.Uint32(b[12:])
	if n > maxArrays {
		return header{}, 0, fmt.Errorf("its header lists %d arrays, at most %d are possible", n, maxArrays)
	}
	for i := range int(n) {
		e, err := decodeEntry(b[64+i*entryBytes:], length)
		if err != nil {
			return header{}, 0, err
		}
		h.entries = append(h.entries, e)
	}
	return h, crc, nil
}

func decodeEntry(b []byte, length int64) (entry, error) {
	e := entry{
		name:   text(b[:nameBytes]),
		typ:    elemType(binary.LittleEndian.Uint32(b[32:])),
		crc:    binary.LittleEndian.Uint32(b[36:]),
		count:  int64(binary.LittleEndian.Uint64(b[40:])),
		offset: int64(binary.LittleEndian.Uint64(b[48:])),
	}
	if e.typ == 0 || int64(e.typ) >= int64(len(elemTypes)) {
		return e, fmt.Errorf("array %q has %v", e.name, e.typ)
	}
	size := elemTypes[e.typ].size
	if e.offset < page || e.offset%page != 0 || e.offset > length ||
		e.count < 0 || e.count > (length-e.offset)/size {
		return e, fmt.Errorf("array %q at byte %d with %d elements is outside the file's %d bytes", e.name, e.offset, e.count, length)
	}
	return e, nil
}

// text returns a zero-padded string without the padding.
func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
