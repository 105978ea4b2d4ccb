package parts

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"siafu/ranks/world/inproc"
)

// Packets decode to what was encoded, without the data of separate blocks.
func TestPackets(t *testing.T) {
	for _, l := range []inproc.Packet{
		{Group: 7, From: 1, To: 2, Seq: -1, Tag: 32767, Data: []byte("rows")},
		{Group: 1 << 63, From: 1, To: -1, Seq: 5, Tag: 1 << 63, Data: []byte("rows")},
		{Group: shutdownGroup, From: noMember, Data: []byte{}},
	} {
		for _, f := range []blockRef{{}, {len(l.Data), 9}} {
			got, block, err := decodePacket(appendPacket(nil, l, f), 3)
			if f.length > 0 {
				l.Data = []byte{}
			}
			if d := cmp.Diff(l, got); d != "" || block != f || err != nil {
				t.Errorf("%+v: %+v, %v %s", f, block, err, d)
			}
		}
	}
}
