package pickle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// unpickler is a cursor over a pickle with one sticky error.
type unpickler struct {
	b     []byte
	at    int
	stack []any
	memo  map[int]any
	known func(Global) bool
	err   error
}

// Decode runs the pickle in b. An error names the byte.
func Decode(b []byte) (any, error) { return decodeKnown(b, func(Global) bool { return true }) }

// decodeKnown decodes like Decode, and refuses unknown names of classes and functions.
func decodeKnown(b []byte, known func(Global) bool) (any, error) {
	u := &unpickler{b: b, memo: map[int]any{}, known: known}
	for {
		start := u.at
		op := u.byte()
		if u.err == nil && op == '.' {
			break
		}
		if u.err == nil {
			u.step(op)
		}
		if u.err != nil {
			return nil, fmt.Errorf("byte %d: %w", start, u.err)
		}
	}
	v := u.pop()
	if u.err != nil || len(u.stack) != 0 {
		return nil, fmt.Errorf("byte %d: the stack does not hold one value at the end", u.at)
	}
	return v, nil
}

func (u *unpickler) fail(format string, args ...any) {
	if u.err == nil {
		u.err = fmt.Errorf(format, args...)
	}
}

func (u *unpickler) step(op byte) {
	if u.constant(op) || u.container(op) || u.memory(op) {
		return
	}
	switch op {
	case 0x80: // PROTO
		if v := u.byte(); v > 5 {
			u.fail("pickle protocol %d, known are 2 to 5", v)
		}
	case 0x95: // FRAME: a hint for readers of streams
		u.take(8)
	case 'c': // GLOBAL
		module := u.line()
		u.global(module, u.line())
	case 0x93: // STACK_GLOBAL
		name, _ := u.pop().(string)
		module, _ := u.pop().(string)
		u.global(module, name)
	case 'R', 0x81: // REDUCE, NEWOBJ
		args, ok := u.pop().(Tuple)
		class, ok2 := u.pop().(Global)
		if !ok || !ok2 {
			u.fail("call of a value that is not a name")
			return
		}
		u.push(&Object{Class: class, Args: args})
	case 'Q': // BINPERSID
		u.push(&Persistent{u.pop()})
	case 'b': // BUILD
		state := u.pop()
		if o, ok := u.top().(*Object); ok {
			o.State = state
			return
		}
		u.fail("state for a value that is not an object")
	default:
		u.fail("instruction %#x is not supported", op)
	}
}

func (u *unpickler) global(module, name string) {
	g := Global(module + " " + name)
	if !u.known(g) {
		u.fail("the name %.80q is not allowed in such files", string(g))
	}
	u.push(g)
}

// constant runs the instructions that push a plain value.
func (u *unpickler) constant(op byte) bool {
	switch op {
	case 'N':
		u.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		u.push(op == 0x88)
	case 'K': // BININT1
		u.push(int64(u.byte()))
	case 'M': // BININT2
		u.push(int64(u.number(2)))
	case 'J': // BININT
		u.push(int64(int32(u.number(4))))
	case 0x8a: // LONG1
		u.push(u.long(int(u.byte())))
	case 'G': // BINFLOAT, the only big-endian number
		if b := u.take(8); b != nil {
			u.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
		}
	case 'U', 'C', 0x8c: // SHORT_BINSTRING, SHORT_BINBYTES, SHORT_BINUNICODE
		u.push(string(u.take(u.number(1))))
	case 'T', 'B', 'X': // BINSTRING, BINBYTES, BINUNICODE
		u.push(string(u.take(u.number(4))))
	case 0x8d, 0x8e, 0x96: // BINUNICODE8, BINBYTES8, BYTEARRAY8
		u.push(string(u.take(u.number(8))))
	default:
		return false
	}
	return true
}

// container runs the instructions that make and fill tuples, lists and dicts.
func (u *unpickler) container(op byte) bool {
	switch op {
	case '(':
		u.push(mark{})
	case ')':
		u.push(Tuple{})
	case 't': // TUPLE
		u.push(Tuple(u.toMark()))
	case 0x85, 0x86, 0x87: // TUPLE1, TUPLE2, TUPLE3
		n := int(op - 0x84)
		if len(u.stack) < n {
			u.fail("the stack is empty")
			break
		}
		t := append(Tuple{}, u.stack[len(u.stack)-n:]...)
		u.stack = u.stack[:len(u.stack)-n]
		u.push(t)
	case ']':
		u.push(&List{})
	case '}':
		u.push(&Dict{})
	case 'a': // APPEND
		u.extend([]any{u.pop()})
	case 'e': // APPENDS
		u.extend(u.toMark())
	case 's': // SETITEM
		value := u.pop()
		u.setItems([]any{u.pop(), value})
	case 'u': // SETITEMS
		u.setItems(u.toMark())
	default:
		return false
	}
	return true
}

// memory runs the instructions that keep values and fetch them again.
func (u *unpickler) memory(op byte) bool {
	switch op {
	case 'q': // BINPUT
		u.memo[u.number(1)] = u.top()
	case 'r': // LONG_BINPUT
		u.memo[u.number(4)] = u.top()
	case 0x94: // MEMOIZE
		u.memo[len(u.memo)] = u.top()
	case 'h': // BINGET
		u.fetch(u.number(1))
	case 'j': // LONG_BINGET
		u.fetch(u.number(4))
	default:
		return false
	}
	return true
}

func (u *unpickler) fetch(i int) {
	v, ok := u.memo[i]
	if !ok {
		u.fail("memo %d is empty", i)
	}
	u.push(v)
}

func (u *unpickler) extend(items []any) {
	if l, ok := u.top().(*List); ok {
		l.Items = append(l.Items, items...)
		return
	}
	u.fail("items for a value that is not a list")
}

// setItems adds keys and values to the dict, or the object that acts as one, on top of the stack.
func (u *unpickler) setItems(items []any) {
	var d *Dict
	switch v := u.top().(type) {
	case *Dict:
		d = v
	case *Object:
		d = &v.Items
	}
	if d == nil || len(items)%2 != 0 {
		u.fail("keys and values for a value that is not a dict")
		return
	}
	for i := 0; i < len(items); i += 2 {
		d.Keys, d.Values = append(d.Keys, items[i]), append(d.Values, items[i+1])
	}
}

func (u *unpickler) push(v any) { u.stack = append(u.stack, v) }

// top returns the last value, ignoring marks.
func (u *unpickler) top() any {
	if len(u.stack) > 0 {
		v := u.stack[len(u.stack)-1]
		if _, mark := v.(mark); !mark {
			return v
		}
	}
	u.fail("the stack is empty")
	return nil
}

func (u *unpickler) pop() any {
	v := u.top()
	if u.err == nil {
		u.stack = u.stack[:len(u.stack)-1]
	}
	return v
}

// toMark takes everything above the last mark, and the mark.
func (u *unpickler) toMark() []any {
	for i := len(u.stack) - 1; i >= 0; i-- {
		if _, mark := u.stack[i].(mark); mark {
			items := append([]any{}, u.stack[i+1:]...)
			u.stack = u.stack[:i]
			return items
		}
	}
	u.fail("there is no mark")
	return nil
}

// take returns the next n bytes, or nil if fewer remain.
func (u *unpickler) take(n int) []byte {
	if n < 0 || n > len(u.b)-u.at {
		u.fail("truncated: %d bytes expected, %d left", n, len(u.b)-u.at)
		u.at = len(u.b)
		return nil
	}
	b := u.b[u.at : u.at+n]
	u.at += n
	return b
}

func (u *unpickler) byte() byte {
	if b := u.take(1); b != nil {
		return b[0]
	}
	return 0
}

// number reads an unsigned little-endian number of size bytes. It fails if an int overflows.
func (u *unpickler) number(size int) int {
	var full [8]byte
	copy(full[:], u.take(size))
	v := binary.LittleEndian.Uint64(full[:])
	if v > math.MaxInt {
		u.fail("length %d", v)
		return 0
	}
	return int(v)
}

// long reads a two's complement little-endian number of size bytes.
func (u *unpickler) long(size int) int64 {
	b := u.take(size)
	if len(b) > 8 {
		u.fail("an integer of %d bytes", size)
		return 0
	}
	var full [8]byte
	copy(full[:], b)
	unused := 64 - 8*len(b)
	return int64(binary.LittleEndian.Uint64(full[:])<<unused) >> unused
}

// line returns the text up to the next newline, and skips the newline.
func (u *unpickler) line() string {
	end := bytes.IndexByte(u.b[u.at:], '\n')
	if end < 0 {
		u.fail("unterminated name")
		return ""
	}
	s := string(u.b[u.at : u.at+end])
	u.at += end + 1
	return s
}
