package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"siafu/internal/decodertest"
	"siafu/internal/fault"
)

func wires() []wireMessage {
	return []wireMessage{
		{kind: wireTally, epoch: 9, numbers: []float64{1e300, 0, -1}},
		{kind: wireStop, epoch: 1 << 20},
	}
}

// Encoded messages decode; truncated messages are rejected.
func TestWire(t *testing.T) {
	for _, m := range wires() {
		b := m.encode(nil)
		got, err := decodeWire(b, 3)
		if d := cmp.Diff(m, got, cmp.AllowUnexported(wireMessage{})); d != "" || err != nil {
			t.Errorf("%v %s", err, d)
		}
		for n := range len(b) {
			if _, err := decodeWire(b[:n], 3); fault.KindOf(err) != fault.Runtime {
				t.Errorf("%d of %d bytes: %v", n, len(b), err)
			}
		}
	}
}

// FuzzWire: any input is a message that encodes to the same bytes, or an error.
func FuzzWire(f *testing.F) {
	for _, m := range wires() {
		f.Add(m.encode(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m wireMessage
		var err error
		decodertest.Heap(t, int64(len(b)), func() { m, err = decodeWire(b, 1) })
		if err != nil {
			return
		}
		if again := m.encode(nil); string(again) != string(b) {
			t.Errorf("%x decodes and encodes to %x", b, again)
		}
	})
}
