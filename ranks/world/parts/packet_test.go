package parts

import (
	"bytes"
	"testing"

	"siafu/ranks/world/inproc"
)

// A message that decodes to a packet equals the encoding of that packet.
func FuzzReadLetter(f *testing.F) {
	f.Add(appendPacket(nil, inproc.Packet{Group: 7, From: 1, To: 2, Seq: -1, Tag: 32767, Data: []byte("rows")}, blockRef{}))
	f.Add(appendPacket(nil, inproc.Packet{Group: 1 << 63, From: 1, To: -1, Seq: 5, Tag: 1 << 63, Data: []byte("rows")}, blockRef{length: 4, tag: 9}))
	f.Add(appendPacket(nil, inproc.Packet{Group: shutdownGroup}, blockRef{}))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, block, err := decodePacket(b, 3)
		if err != nil {
			if len(b) >= headerBytes {
				t.Fatalf("%d bytes: %v", len(b), err)
			}
			return
		}
		again := appendPacket(nil, l, block)
		if want := b[:len(again)]; !bytes.Equal(again, want) {
			t.Errorf("%x is read as %+v and %+v and written as %x", b, l, block, again)
		}
	})
}
