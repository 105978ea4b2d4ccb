package parts

import (
	"strings"
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

// A packet with an impossible block is refused, with its sender.
func TestDamagedBlocks(t *testing.T) {
	for _, f := range []blockRef{{-1, 0}, {1, -1}, {1, tagCount}} {
		if _, _, err := decodePacket(appendPacket(nil, inproc.Packet{Group: 7}, f), 3); err == nil || !strings.Contains(err.Error(), "from rank 3") {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
