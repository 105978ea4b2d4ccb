package protocol

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"siafu/internal/wire"
)

func TestRoundTrip(t *testing.T) {
	room := make([]float32, 3)
	for _, m := range []Message{
		{Type: wire.Fetch, From: 1, To: 2, Epoch: 1 << 31, Interval: 7, Version: 4},
		{Type: wire.Weights, From: 1, To: 2, Epoch: 3, Load: 5, Values: []float32{1, -2, 0.5}},
		{Type: wire.Sum, From: 1, To: 2, Epoch: 3, Layer: 1, Count: 6, Values: []float32{1, 2, 3, 4}},
	} {
		got, err := Decode(Encode([]byte("before"), m)[6:], 1, 2, room)
		if diff := cmp.Diff(m, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
	b := Encode(nil, Message{Type: wire.Gradient, Values: room})
	if n := testing.AllocsPerRun(10, func() {
		m, _ := Decode(b, 1, 2, room)
		b = Encode(b[:0], m)
	}); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

// Kinds of other packages are refused.
func TestForeignKinds(t *testing.T) {
	for _, k := range []wire.Kind{0, wire.End + 1, wire.Tally, 255} {
		b := Encode(nil, Message{Type: wire.Gradient})
		b[0] = byte(k)
		if _, err := Decode(b, 5, 6, nil); err == nil || !strings.Contains(err.Error(), "from rank 5") {
			t.Errorf("%v: %v", k, err)
		}
	}
}

// FuzzStep gives machines any decodable message: they may reject it, but must not panic.
func FuzzStep(f *testing.F) {
	f.Add([]byte{1, 0, 1, 0, 0, 0, 4, 0, 1, 0, 1, 3, 4, 0, 1, 0, 0, 2, 5, 0, 1, 0, 0, 1})
	f.Add([]byte{6, 3, 1, 0, 0, 0, 5, 1, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		s := New(small, 0, twoLayers, values(5), &sgd{})
		h, p := NewChooser(small, 0, 2, 5), NewProgress(small, 0)
		h.Fetch(0, 1, 0)
		for ; len(b) >= 6; b = b[6:] {
			m := Message{
				Type: wire.Kind(b[0]), From: int(b[1]), Epoch: int(b[2]), Interval: int(b[3]), Layer: int(b[4]),
				Version: int(b[3]), Count: int(b[5] & 7), Values: values(int(b[5] & 7)),
			}
			if h.Take(m) == nil && m.Type != wire.Weights || p.Step(m) == nil && m.Type != wire.Finished {
				t.Fatalf("%v is taken by a graph rank", m.Type)
			}
			if _, err := s.Step(m); err != nil {
				return
			}
		}
	})
}
