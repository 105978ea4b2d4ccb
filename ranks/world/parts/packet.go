package parts

import (
	"siafu/internal/wire"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// inlineLimit is the maximal length in bytes of a block within its packet. A longer block is sent as a
// separate message on another communicator, with the tag in its packet: from the sender's buffer to the
// receiver's, without a copy.
const inlineLimit = 16 << 10

// tagCount is the number of tags that separate blocks use cyclically.
const tagCount = world.MaxTag + 1

// blockRef identifies a separate block. Its length is 0 if there is none.
type blockRef struct{ length, tag int }

// shutdownGroup is the communicator in a rank's last packet to another rank.
const shutdownGroup = 0

// noMember is the sender in a last packet if no member was ended.
const noMember = -1

// appendPacket encodes a packet, with its data unless that is a separate block.
func appendPacket(b []byte, l inproc.Packet, f blockRef) []byte {
	m := wire.Message{Kind: wire.Packet, Numbers: wire.Numbers{int(l.Group), int(l.Tag), l.Seq, l.From, l.To, f.length, f.tag}}
	if f.length == 0 {
		m.Body = l.Data
	}
	return m.Append(b)
}

// decodePacket decodes a message. The packet's data refers to b.
func decodePacket(b []byte, source int) (inproc.Packet, blockRef, error) {
	m, err := wire.Open("parts", source, b, wire.Packet, wire.Packet)
	x, f := m.Numbers, blockRef{m.Numbers[5], m.Numbers[6]}
	if err == nil && (f.length < 0 || f.tag < 0 || f.tag >= tagCount) {
		err = wire.Damaged("parts", source, m.Kind, "a block of %d bytes with tag %d", f.length, f.tag)
	}
	return inproc.Packet{Group: uint64(x[0]), Tag: uint64(x[1]), Seq: x[2], From: x[3], To: x[4], Data: m.Body}, f, err
}
