package parts

import (
	"encoding/binary"

	"siafu/internal/fault"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// A packet is sent as a message with a 40-byte little-endian header, followed by its data. A long
// block is sent as a separate message on another communicator, with the tag in its packet. It is
// sent from the sender's buffer and received in the receiver's buffer, without a copy.
//
//	offset  bytes
//	     0      8  communicator; 0: the last packet of the rank
//	     8      8  tag of a message, or signature of the collective
//	    16      8  sequence number of the collective, -1 for a message
//	    24      4  sender; in a last packet: a member that was ended, or -1
//	    28      4  receiver, -1 for all
//	    32      8  length of a separate block, times 2¹⁵, plus its tag; 0: none
const headerBytes = 40

// inlineLimit is the maximal length in bytes of a block within its packet.
const inlineLimit = 16 << 10

// tagCount is the number of tags that separate blocks use cyclically.
const tagCount = world.MaxTag + 1

// blockRef identifies a separate block.
type blockRef struct{ length, tag int }

func (f blockRef) number() uint64 { return uint64(f.length)*tagCount + uint64(f.tag) }

// shutdownGroup is the communicator in a rank's last packet to another rank.
const shutdownGroup = 0

// noMember is the sender in a last packet if no member was ended.
const noMember = -1

// appendPacket encodes a packet, with its data unless that is a separate block.
func appendPacket(b []byte, l inproc.Packet, f blockRef) []byte {
	b = binary.LittleEndian.AppendUint64(b, l.Group)
	b = binary.LittleEndian.AppendUint64(b, l.Tag)
	b = binary.LittleEndian.AppendUint64(b, uint64(l.Seq))
	b = binary.LittleEndian.AppendUint32(b, uint32(l.From))
	b = binary.LittleEndian.AppendUint32(b, uint32(l.To))
	b = binary.LittleEndian.AppendUint64(b, f.number())
	if f.length > 0 {
		return b
	}
	return append(b, l.Data...)
}

// decodePacket decodes a message. The packet's data refers to b.
func decodePacket(b []byte, source int) (inproc.Packet, blockRef, error) {
	if len(b) < headerBytes {
		return inproc.Packet{}, blockRef{}, fault.New(fault.Runtime, "parts", "", "malformed message from rank %d (%d bytes)", source, len(b)).
			Then("run the same siafu on all ranks")
	}
	number := binary.LittleEndian.Uint64(b[32:])
	return inproc.Packet{
		Group: binary.LittleEndian.Uint64(b), Tag: binary.LittleEndian.Uint64(b[8:]), Seq: int(binary.LittleEndian.Uint64(b[16:])),
		From: int(int32(binary.LittleEndian.Uint32(b[24:]))), To: int(int32(binary.LittleEndian.Uint32(b[28:]))),
		Data: b[headerBytes:],
	}, blockRef{int(number / tagCount), int(number % tagCount)}, nil
}
