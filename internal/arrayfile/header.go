package arrayfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"reflect"
	"strings"

	"siafu/internal/mapped"
)

const (
	magic      = "SIAFUARR"
	version    = 1
	page       = 4096
	entryBytes = 64
	maxArrays  = page/entryBytes - 1
	nameBytes  = 32
	crcAt      = 56 // offset of headerPage.CRC
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

type entry struct {
	name   string
	typ    elemType
	crc    uint32
	count  int64
	offset int64
	// unfilled is the number of elements, the last ones, that a Writer has not written yet.
	unfilled int64
}

func (e entry) bytes() int64 { return e.count * elemTypes[e.typ].size }

type header struct {
	kind    string
	length  int64
	entries []entry
}

// headerPage is the layout of the first page. Strings are zero-padded.
type headerPage struct {
	Magic           [8]byte
	Version, Arrays uint32
	Kind            [nameBytes]byte
	Length          int64
	CRC             uint32
	_               uint32
	Entries         [maxArrays]struct {
		Name          [nameBytes]byte
		Type          elemType
		CRC           uint32
		Count, Offset int64
		_             int64
	}
}

func align(n int64) int64 { return (n + page - 1) / page * page }

func (h header) encode() ([]byte, uint32) {
	p := headerPage{Magic: [8]byte([]byte(magic)), Version: version, Arrays: uint32(len(h.entries)), Length: h.length}
	copy(p.Kind[:], h.kind)
	for i, e := range h.entries {
		to := &p.Entries[i]
		copy(to.Name[:], e.name)
		to.Type, to.CRC, to.Count, to.Offset = e.typ, e.crc, e.count, e.offset
	}
	b := make([]byte, page)
	binary.Encode(b, binary.LittleEndian, p)
	crc := crc32.Checksum(b, castagnoli)
	binary.LittleEndian.PutUint32(b[crcAt:], crc)
	return b, crc
}

// decode reads a header page of a file of the given length. Its errors do not name the file.
func decode(b []byte, length int64) (h header, crc uint32, err error) {
	if len(b) < page {
		return h, 0, fmt.Errorf("it has %d bytes, fewer than the %d of a header", length, page)
	}
	var p headerPage
	binary.Decode(b, binary.LittleEndian, &p)
	copied := bytes.Clone(b[:page])
	clear(copied[crcAt : crcAt+4])
	switch sum := crc32.Checksum(copied, castagnoli); {
	case string(p.Magic[:]) != magic:
		return h, 0, fmt.Errorf("it begins with %q, expected %q", p.Magic, magic)
	case sum != p.CRC:
		return h, 0, fmt.Errorf("header checksum %08x instead of %08x", sum, p.CRC)
	case p.Version != version:
		return h, 0, fmt.Errorf("its format version is %d, this program reads %d", p.Version, version)
	case p.Length != length:
		return h, 0, fmt.Errorf("it has %d bytes, but its header has %d", length, p.Length)
	case p.Arrays > maxArrays:
		return h, 0, fmt.Errorf("its header lists %d arrays, at most %d are possible", p.Arrays, maxArrays)
	}
	h = header{kind: text(p.Kind), length: p.Length}
	for _, from := range p.Entries[:p.Arrays] {
		e := entry{name: text(from.Name), typ: from.Type, crc: from.CRC, count: from.Count, offset: from.Offset}
		if e.typ == 0 || int64(e.typ) >= int64(len(elemTypes)) {
			return h, 0, fmt.Errorf("array %q has %v", e.name, e.typ)
		}
		if e.offset < page || e.offset%page != 0 || e.offset > length ||
			e.count < 0 || e.count > (length-e.offset)/elemTypes[e.typ].size {
			return h, 0, fmt.Errorf("array %q at byte %d with %d elements is outside the file's %d bytes",
				e.name, e.offset, e.count, length)
		}
		h.entries = append(h.entries, e)
	}
	return h, p.CRC, nil
}

// text returns a zero-padded string without the padding.
func text(b [nameBytes]byte) string {
	s, _, _ := strings.Cut(string(b[:]), "\x00")
	return s
}
