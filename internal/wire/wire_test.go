package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"siafu/internal/fault"
	"siafu/internal/testkit/decodertest"
)

// example returns a message of a kind with all its numbers, and with two elements if it has a body.
func example(k Kind) Message {
	l, m := kinds[k], Message{Kind: k, Body: []byte{}}
	if l.note {
		m.Note = 7
	}
	for i := range l.numbers {
		m.Numbers[i] = 1<<31 + i
		if l.width == 8 {
			m.Numbers[i] = -1 - i
		}
	}
	for k := range 2 * max(l.element, -l.element) {
		m.Body = append(m.Body, byte(k))
	}
	return m
}

// Messages of all kinds decode to what was encoded. Damaged ones are errors of the sender with a remedy.
func TestAllKinds(t *testing.T) {
	for k := Kind(1); int(k) < len(kinds); k++ {
		m := example(k)
		b := m.Append([]byte("before"))[6:]
		got, err := Open("train", 5, b, k, k)
		if d := cmp.Diff(m, got); d != "" || err != nil {
			t.Errorf("%v: %v %s", k, err, d)
		}
		refused := func(what string, b []byte) {
			t.Helper()
			_, err := Open("train", 5, b, k, k)
			if fault.KindOf(err) != fault.Runtime || !strings.Contains(err.Error(), "rank 5") ||
				!strings.Contains(err.Error(), "same siafu") {
				t.Errorf("%v, %s: %v", k, what, err)
			}
		}
		shortest := len(b) // that is refused if it is cut
		if kinds[k].element == open {
			shortest = k.HeaderBytes()
		} else {
			refused("extended", append(bytes.Clone(b), make([]byte, max(1, kinds[k].element))...))
		}
		for n := range shortest {
			refused("cut", b[:n])
		}
		for at := range preamble {
			damaged := bytes.Clone(b)
			if damaged[at]++; at != 1 || !kinds[k].note {
				refused("damaged", damaged)
			}
		}
		if sealed, body := Unseal(k.Seal(b)); sealed != k || !bytes.Equal(body, b) {
			t.Errorf("%v comes out as %v", k, sealed)
		}
		if strings.HasPrefix(k.String(), "unknown") || k.String() == "" {
			t.Errorf("kind %d has no name", k)
		}
	}
}

// FuzzOpen: any input is a message that encodes to the same bytes, or an error.
func FuzzOpen(f *testing.F) {
	for k := Kind(1); int(k) < len(kinds); k++ {
		m := example(k)
		f.Add(m.Append(nil))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Message
		var err error
		decodertest.Heap(t, int64(len(b)), func() { m, err = Open("train", 5, b, 1, Kind(len(kinds)-1)) })
		if err != nil {
			return
		}
		if again := m.Append(nil); !bytes.Equal(again, b) {
			t.Errorf("%x decodes and encodes to %x", b, again)
		}
	})
}

// A Reader returns what a Writer has appended. Cut bytes and lying lengths are errors, and take no memory.
func TestFields(t *testing.T) {
	var w Writer
	w.Numbers(3, -1, Bit(true))
	w.Bytes([]byte{1, 2, 3, 4, 5, 6, 7, 8})
	read := func(b []byte) (Reader, bool) {
		r := Reader{Rest: b}
		ok := r.Number() == 3 && r.Number() == -1 && r.Flag()
		x := Array[uint16](&r, -1)
		return r, ok && len(x) == 4 && x[3] == 0x0807
	}
	if r, ok := read(w.B); !ok || r.Err != nil || len(r.Rest) > 0 {
		t.Errorf("%+v", r)
	}
	for n := range w.B {
		if r, _ := read(w.B[:n]); r.Err == nil {
			t.Errorf("%d of %d bytes are accepted", n, len(w.B))
		}
	}
	for lie := range decodertest.BinaryLies(w.B) {
		decodertest.Heap(t, int64(len(lie)), func() { read(lie) })
	}
	var odd Writer
	odd.Bytes([]byte{1, 2, 3})
	if r := (Reader{Rest: odd.B}); len(Array[uint16](&r, -1)) != 1 || r.Err == nil {
		t.Error("an array of 1.5 elements is accepted")
	}
	var count Writer
	count.Numbers(2, 0)
	if r := (Reader{Rest: count.B}); r.Count() != 0 || r.Err == nil {
		t.Error("a list of 2 elements in 8 bytes is accepted")
	}
}
