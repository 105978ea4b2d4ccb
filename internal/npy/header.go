package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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

// header is what precedes an array's bytes.
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
func parseHeader(text []byte) (header, error) {
	var h header
	p := literal{text: bytes.TrimRight(text, " \n\x00")}
	seen := 0
	p.want('{')
	for p.err == nil && !p.take('}') {
		key := p.quoted()
		p.want(':')
		switch key {
		case "descr":
			if p.peek() == '[' {
				p.err = fmt.Errorf("header byte %d: %w", p.at, typeError("structured types are not supported"))
				break
			}
			h.descr = p.quoted()
			seen |= 1
		case "fortran_order":
			h.fortran = p.boolean()
			seen |= 2
		case "shape":
			h.shape = p.tuple()
			seen |= 4
		default:
			p.fail("unknown key %q", key)
		}
		if !p.take(',') && p.peek() != '}' {
			p.fail("expected , or }")
		}
	}
	if p.err == nil && p.at != len(p.text) {
		p.fail("text after the closing brace")
	}
	if p.err == nil && seen != 7 {
		p.fail("descr, fortran_order or shape is missing")
	}
	return h, p.err
}

// literal is a cursor over a Python literal with one sticky error.
type literal struct {
	text []byte
	at   int
	err  error
}

func (p *literal) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("header byte %d: %s", p.at, fmt.Sprintf(format, args...))
	}
}

// peek returns the next non-blank byte, 0 at the end.
func (p *literal) peek() byte {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
	if p.err != nil || p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *literal) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.at++
	return true
}

func (p *literal) want(c byte) {
	if !p.take(c) {
		p.fail("expected %q", c)
	}
}

func (p *literal) quoted() string {
	quote := p.peek()
	if quote != '\'' && quote != '"' {
		p.fail("expected a quoted word")
		return ""
	}
	end := bytes.IndexByte(p.text[p.at+1:], quote)
	if end < 0 {
		p.fail("unterminated word")
		return ""
	}
	word := string(p.text[p.at+1 : p.at+1+end])
	p.at += end + 2
	return word
}

func (p *literal) boolean() bool {
	p.peek()
	rest := string(p.text[p.at:])
	for word, value := range map[string]bool{"True": true, "False": false} {
		if strings.HasPrefix(rest, word) {
			p.at += len(word)
			return value
		}
	}
	p.fail("expected True or False")
	return false
}

// tuple reads (), (3,) or (3, 4); Python 2 wrote 3L for large numbers.
func (p *literal) tuple() []int {
	shape := []int{}
	p.want('(')
	for p.err == nil && !p.take(')') {
		p.peek()
		start := p.at
		for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
			p.at++
		}
		n, err := strconv.Atoi(string(p.text[start:p.at]))
		if err != nil {
			p.fail("expected a dimension")
			return nil
		}
		shape = append(shape, n)
		p.take('L')
		if !p.take(',') && p.peek() != ')' {
			p.fail("expected , or )")
		}
	}
	return shape
}

// element is a parsed type descriptor such as "<f4".
type element struct {
	kind  byte // b, i, u, f, U, S
	bytes int  // of one element
	big   bool // big endian
}

// typeError is ErrType in other words.
type typeError string

func (t typeError) Error() string { return string(t) }
func (typeError) Unwrap() error   { return ErrType }

// parseType reads a type descriptor.
func parseType(descr string) (element, error) {
	var e element
	bad := typeError(fmt.Sprintf("type %q is not supported", descr))
	if len(descr) < 3 {
		return e, bad
	}
	size, err := strconv.Atoi(descr[2:])
	if err != nil || size < 0 || descr[2] == '+' || descr[2] == '-' {
		return e, bad
	}
	e = element{kind: descr[1], bytes: size, big: descr[0] == '>'}
	known := false
	switch e.kind {
	case 'b':
		known = size == 1
	case 'i', 'u':
		known = size == 1 || size == 2 || size == 4 || size == 8
	case 'f':
		known = size == 2 || size == 4 || size == 8
	case 'S':
		known = true
	case 'U':
		known = size <= math.MaxInt32/4
		e.bytes = 4 * size // UCS-4
	}
	if !known || !strings.ContainsRune("<>|=", rune(descr[0])) {
		return e, bad
	}
	return e, nil
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
