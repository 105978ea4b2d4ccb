package parts

import (
	"encoding/binary"

	"siafu/internal/fault"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// A packet is sent as a message: a 40-byte little-endian header, and its data. A long block
// follows by itself, so that nobody copies it: it is sent from where it stands and received
// where it is wanted, on another communicator and under the tag in its packet.
//
//	offset  bytes
//	     0      8  communicator; 0: the rank says farewell
//	     8      8  tag, or what the collective is
//	    16      8  number of the collective, -1 for a message
//	    24      4  sender; of a farewell, a member that was ended, -1: none was
//	    28      4  receiver, -1 for all
//	    32      8  length of a block that follows, times 2¹⁵, and its tag; 0: none does
const headerBytes = 40

// inside is the maximal length of a block that is sent within its packet, in bytes.
const inlineLimit = 16 << 10

// tags is how many tags those which follow take in turn.
const tagCount = world.MaxTag + 1

// blockRef is a block that comes by itself.
type blockRef struct{ length, tag int }

func (f blockRef) number() uint64 { return uint64(f.length)*tagCount + uint64(f.tag) }

// farewell is the communicator of a rank's last packet to another one.
const shutdownGroup = 0

// noMember is the sender of a farewell after everything has gone well.
const noMember = -1

// appendPacket encodes a packet, with its data unless that follows.
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

// decodePacket decodes a message; the packet's data is the rest of b.
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
