package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// magic starts every npy file; the major and the minor version follow it.
const magic = "\x93NUMPY"

// maxHeader bounds the header's text. NumPy itself writes about 100 bytes, and
// longer ones only for structured types, which are refused anyway.
const maxHeader = 1 << 16

// maxEmpty bounds the elements of a type without bytes, such as "<U0". NumPy itself gives
// empty words one character, except for a field of a structured array.
const maxEmpty = 1 << 16

// ErrType is in the chain of faults about unsupported types: objects, structured types,
// unknown types, and numbers if words are requested.
var ErrType = errors.New("type is not supported")

type header struct {
	descr   string
	fortran bool
	shape   []int
}

// headerSize returns the lengths in bytes of the preamble (magic, version, length) and of the
// text after it. b must contain at least the first 12 bytes of the file.
func headerSize(b []byte) (preamble, text int, err error) {
	if len(b) < 12 || string(b[:6]) != magic {
		return 0, 0, fmt.Errorf("byte 0: %q is not the magic of an npy file", b[:min(len(b), 6)])
	}
	switch b[6] {
	case 1:
		preamble, text = 10, int(binary.LittleEndian.Uint16(b[8:]))
	case 2, 3:
		// Compared before it becomes an int, which may have 32 bits.
		long := binary.LittleEndian.Uint32(b[8:])
		preamble, text = 12, int(min(long, maxHeader+1))
	default:
		return 0, 0, fmt.Errorf("byte 6: npy version %d, known are 1, 2 and 3", b[6])
	}
	if text > maxHeader {
		return 0, 0, fmt.Errorf("byte 8: header longer than %d bytes", maxHeader)
	}
	return preamble, text, nil
}

// parseHeader reads the header's text, a Python dict literal with the keys
// descr, fortran_order and shape in any order.
func parseHeader(text []byte) (h header, err error) {
	p := literal{text: strings.TrimRight(string(text), " \n\x00")}
	seen := map[string]bool{}
	for p.want("{"); p.err == nil && !p.take("}"); p.comma("}") {
		key := p.quoted()
		p.want(":")
		seen[key] = true
		switch key {
		case "descr":
			if p.take("[") {
				return h, fmt.Errorf("header byte %d: %w", p.at, typeError("structured types are not supported"))
			}
			h.descr = p.quoted()
		case "fortran_order":
			h.fortran = p.token(boolean, "True or False") == "True"
		case "shape":
			h.shape = p.tuple()
		default:
			p.fail("unknown key %q", key)
		}
	}
	if p.at != len(p.text) {
		p.fail("text after the closing brace")
	}
	if len(seen) != 3 {
		p.fail("descr, fortran_order or shape is missing")
	}
	return h, p.err
}

// literal is a cursor over a Python literal with one sticky error.
type literal struct {
	text string
	at   int
	err  error
}

func (p *literal) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("header byte %d: %s", p.at, fmt.Sprintf(format, args...))
	}
}

// Tokens of a literal. Python 2 wrote 3L for large numbers.
var (
	word      = regexp.MustCompile(`^('[^']*'|"[^"]*")`)
	boolean   = regexp.MustCompile(`^(True|False)`)
	dimension = regexp.MustCompile(`^[0-9]+L?`)
)

func (p *literal) token(pattern *regexp.Regexp, what string) string {
	p.take("")
	found := pattern.FindString(p.text[p.at:])
	if found == "" {
		p.fail("expected %s", what)
	}
	p.at += len(found)
	return found
}

// take skips blanks, and s if it follows.
func (p *literal) take(s string) bool {
	rest := strings.TrimLeft(p.text[p.at:], " ")
	p.at = len(p.text) - len(rest)
	if p.err != nil || !strings.HasPrefix(rest, s) {
		return false
	}
	p.at += len(s)
	return true
}

func (p *literal) want(s string) {
	if !p.take(s) {
		p.fail("expected '%s'", s)
	}
}

// comma skips the comma between two items, which is optional before end.
func (p *literal) comma(end string) {
	if !p.take(",") && !strings.HasPrefix(p.text[p.at:], end) {
		p.fail("expected , or %s", end)
	}
}

func (p *literal) quoted() string {
	w := p.token(word, "a quoted word")
	return w[min(1, len(w)):max(0, len(w)-1)]
}

// tuple reads (), (3,) or (3, 4).
func (p *literal) tuple() []int {
	shape := []int{}
	for p.want("("); p.err == nil && !p.take(")"); p.comma(")") {
		n, err := strconv.Atoi(strings.TrimSuffix(p.token(dimension, "a dimension"), "L"))
		if err != nil {
			p.fail("expected a dimension")
		}
		shape = append(shape, n)
	}
	return shape
}

// element is a parsed type descriptor such as "<f4".
type element struct {
	kind  byte // b, i, u, f, U, S, or B of BFloat16
	bytes int  // of one element
	big   bool // big endian
}

// typeError is ErrType in other words.
type typeError string

func (t typeError) Error() string { return string(t) }
func (typeError) Unwrap() error   { return ErrType }

// BFloat16 is the type descriptor of bfloat16 numbers, little-endian. NumPy has no such type, and
// files of NumPy cannot have it.
const BFloat16 = "<B2"

// types matches the supported type descriptors: byte order, kind and size.
var types = regexp.MustCompile(`^[<>|=](b1|[iu][1248]|f[248]|B2|[SU][0-9]+)$`)

func parseType(descr string) (element, error) {
	if types.MatchString(descr) {
		e := element{kind: descr[1], big: descr[0] == '>'}
		size, err := strconv.Atoi(descr[2:])
		if e.bytes = size; e.kind == 'U' {
			e.bytes = 4 * size // UCS-4
		}
		if err == nil && size <= math.MaxInt32/4 {
			return e, nil
		}
	}
	return element{}, typeError(fmt.Sprintf("type %q is not supported", descr))
}

// count returns the number of elements of shape and of their bytes. It fails on overflow, and
// if more than maxEmpty elements have no bytes, because the file does not prove their number.
func count(shape []int, elemBytes int) (elems, size int, err error) {
	elems = 1
	for _, n := range shape {
		if n < 0 || n > 0 && elems > math.MaxInt/n {
			return 0, 0, fmt.Errorf("shape %v overflows", shape)
		}
		elems *= n
	}
	if elemBytes == 0 && elems > maxEmpty {
		return 0, 0, fmt.Errorf("shape %v of elements without bytes, the maximum is %d", shape, maxEmpty)
	}
	if elemBytes > 0 && elems > math.MaxInt/elemBytes {
		return 0, 0, fmt.Errorf("shape %v of %d-byte elements overflows", shape, elemBytes)
	}
	return elems, elems * elemBytes, nil
}

// Header returns the header of a row-major array in a file: version 1 of the format, padded so
// that the data start at a multiple of 64. descr is NumPy's name of the element type: <f4 is a
// float32, <i8 an int64. Several ranks can write rows of one array in parallel, each at its
// offset after the header.
func Header(descr string, shape ...int) []byte {
	var dims strings.Builder
	for i, n := range shape {
		if i > 0 {
			dims.WriteString(", ")
		}
		fmt.Fprint(&dims, n)
	}
	if len(shape) == 1 {
		dims.WriteByte(',') // Python's tuple of one
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims.String())
	// The text ends in a newline and is padded with blanks before it.
	total := (10 + len(text) + 1 + 63) / 64 * 64
	h := binary.LittleEndian.AppendUint16([]byte(magic+"\x01\x00"), uint16(total-10))
	return fmt.Appendf(h, "%-*s\n", total-11, text)
}
