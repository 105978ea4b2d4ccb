// Package wire encodes messages between the processes of a run. Message is a header with a body; kinds.go
// lists the kinds of all messages. Writer and Reader have the numbers and arrays of long messages and of
// states. Mismatch is the error of messages that do not fit together. GetBuffer and PutBuffer reuse the
// memory of messages.
package wire

import (
	"encoding/binary"
	"fmt"
	"slices"

	"siafu/internal/fault"
)

// Message is a message without its sender and receiver, which the transport knows. Its wire form is
// little-endian:
//
//	kind     1 byte
//	note     1 byte
//	zero     2 bytes
//	numbers  of 4 bytes, unsigned, or of 8 bytes, signed: the kind determines how many
//	count    of elements of the body, like a number; absent if the kind has no body, or does not count
//	body
type Message struct {
	Kind    Kind
	Note    uint8
	Numbers Numbers
	Body    []byte // a decoded message's is part of the wire form
}

// Numbers are the numbers of a header. Those that a kind does not have are 0.
type Numbers [7]int

// preamble is the number of bytes before the numbers.
const preamble = 4

// HeaderBytes returns the length of a message of this kind without its body.
func (k Kind) HeaderBytes() int {
	l := &kinds[k].layout
	n := l.numbers
	if l.element > 0 {
		n++
	}
	return preamble + n*l.width
}

// Append appends the wire form of m.
func (m *Message) Append(dst []byte) []byte {
	dst = slices.Grow(dst, m.Kind.HeaderBytes()+len(m.Body))
	return append(m.AppendHeader(dst, len(m.Body)), m.Body...)
}

// AppendHeader appends the header of m for a body of the given length in bytes.
func (m *Message) AppendHeader(dst []byte, body int) []byte {
	l, at, size := &kinds[m.Kind].layout, len(dst), m.Kind.HeaderBytes()
	dst = slices.Grow(dst, size)[:at+size]
	h := dst[at:]
	h[0], h[1], h[2], h[3] = byte(m.Kind), m.Note, 0, 0
	for i, v := range m.Numbers[:l.numbers] {
		l.put(h, i, v)
	}
	if l.element > 0 {
		l.put(h, l.numbers, body/l.element)
	}
	return dst
}

// put sets number i of a header, and get returns it.
func (l *layout) put(h []byte, i, v int) {
	if l.width == 4 {
		binary.LittleEndian.PutUint32(h[preamble+4*i:], uint32(v))
	} else {
		binary.LittleEndian.PutUint64(h[preamble+8*i:], uint64(v))
	}
}

func (l *layout) get(h []byte, i int) int {
	if l.width == 4 {
		return int(binary.LittleEndian.Uint32(h[preamble+4*i:]))
	}
	return int(binary.LittleEndian.Uint64(h[preamble+8*i:]))
}

// Open decodes a message from a rank (negative: unknown), of a kind from first to last. It never trusts the
// bytes.
func Open(op string, from int, b []byte, first, last Kind) (Message, error) {
	m, length, err := Header(op, from, b, first, last)
	if err != nil {
		return Message{}, err
	}
	m.Body = b[m.Kind.HeaderBytes():]
	if length != len(m.Body) && kinds[m.Kind].element != open {
		return Message{}, Damaged(op, from, m.Kind, "it announces %d bytes but carries %d", length, len(m.Body))
	}
	return m, nil
}

// Header decodes the header of a message without its body, and returns the length of the body in bytes
// if the header has it.
func Header(op string, from int, b []byte, first, last Kind) (m Message, body int, err error) {
	k := KindOf(b)
	if k < first || k > last {
		return m, 0, Unexpected(op, from, k)
	}
	l, size := &kinds[k].layout, k.HeaderBytes()
	if len(b) < size {
		return m, 0, Damaged(op, from, k, "%d bytes, fewer than its header of %d", len(b), size)
	}
	m.Kind, m.Note = k, b[1]
	for i := range l.numbers {
		m.Numbers[i] = l.get(b, i)
	}
	if l.element > 0 {
		if body = l.get(b, l.numbers); body < 0 || body > mostBytes/l.element {
			err = Damaged(op, from, k, "it announces %d elements", body)
		}
		body *= l.element
	}
	if b[2]|b[3] != 0 || b[1] != 0 && !l.note {
		err = Damaged(op, from, k, "its reserved bytes are not zero")
	}
	return m, body, err
}

// mostBytes is the maximal length of a body that a header announces.
const mostBytes = 1 << 40

// KindOf returns the kind of an encoded message, 0 if it is empty.
func KindOf(b []byte) Kind {
	if len(b) == 0 {
		return 0
	}
	return Kind(b[0])
}

// Seal appends a trailer: b becomes a message of this kind without a header.
func (k Kind) Seal(b []byte) []byte { return append(b, byte(k)) }

// Unseal returns the kind in the trailer of a message, 0 if it is empty, and the bytes before it.
func Unseal(b []byte) (Kind, []byte) {
	end := max(len(b)-1, 0)
	return KindOf(b[end:]), b[:end]
}

// Unexpected returns the error of a message whose kind its receiver does not handle.
func Unexpected(op string, from int, k Kind) error {
	return Mismatch(op, "unexpected message %q%s", k, sender(from))
}

// Damaged returns the error of a message that cannot be decoded.
func Damaged(op string, from int, k Kind, format string, args ...any) error {
	return Mismatch(op, "message %q%s: %s", k, sender(from), fmt.Sprintf(format, args...))
}

// sender returns the words for a sender, none if it is negative: a process whose rank is unknown.
func sender(from int) string {
	if from < 0 {
		return ""
	}
	return fmt.Sprintf(" from rank %d", from)
}

// Mismatch returns the error of ranks that contradict each other: a message is damaged, or impossible in
// the state of its receiver.
func Mismatch(op, format string, args ...any) error {
	return fault.New(fault.Runtime, op, "", format, args...).Then("run the same siafu with the same options on all ranks")
}
