package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"siafu/graph/decodertest"
	"siafu/graph/fault"
)

func wires() []wire {
	return []wire{
		{kind: wireRows, layer: 2, epoch: 7, first: 11, count: 2, block: []byte{1, 2, 3, 4, 5}},
		{kind: wireGrads, epoch: 1, count: 1, block: []byte{9}},
		{kind: wireTally, epoch: 9, numbers: []float64{1e300, 0, -1}},
		{kind: wireStop, epoch: 1 << 20},
	}
}

// What is encoded is decoded; what is cut is refused, here or, within a block,
// by its checksum.
func TestWire(t *testing.T) {
	for _, m := range wires() {
		b := m.encode(nil)
		got, err := decodeWire(b, 3)
		if d := cmp.Diff(m, got, cmp.AllowUnexported(wire{})); d != "" || err != nil {
			t.Errorf("%v %s", err, d)
		}
		for n := range len(b) - len(m.block) {
			if _, err := decodeWire(b[:n], 3); fault.KindOf(err) != fault.Runtime {
				t.Errorf("%d of %d bytes: %v", n, len(b), err)
			}
		}
	}
}

// FuzzWire: whatever arrives is a message that encodes to the same bytes, or a
// fault.
func FuzzWire(f *testing.F) {
	for _, m := range wires() {
		f.Add(m.encode(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m wire
		var err error
		decodertest.Heap(t, int64(len(b)), func() { m, err = decodeWire(b, 1) })
		if err != nil {
			return
		}
		// Three bytes behind the kind say nothing.
		again := m.encode(nil)
		copy(again[1:4], b[1:4])
		if string(again) != string(b) {
			t.Errorf("%x decodes and encodes to %x", b, again)
		}
	})
}
