package parts

import (
	"encoding/binary"

	"siafu/graph/fault"
	"siafu/ranks/world/inproc"
)

// A letter travels as a message: 32 bytes in front, little-endian, and its data.
//
//	offset  bytes
//	     0      8  communicator; 0: the rank says farewell
//	     8      8  tag, or what the collective is
//	    16      8  number of the collective, -1 for a message
//	    24      4  sender
//	    28      4  receiver, -1 for all
const headerBytes = 32

// farewell is the communicator of a rank's last letter to another one.
const farewell = 0

func appendLetter(b []byte, l inproc.Letter) []byte {
	b = binary.LittleEndian.AppendUint64(b, l.Group)
	b = binary.LittleEndian.AppendUint64(b, l.Tag)
	b = binary.LittleEndian.AppendUint64(b, uint64(l.Seq))
	b = binary.LittleEndian.AppendUint32(b, uint32(l.From))
	b = binary.LittleEndian.AppendUint32(b, uint32(l.To))
	return append(b, l.Data...)
}

// readLetter takes a message apart; the letter's data is the rest of b.
func readLetter(b []byte, source int) (inproc.Letter, error) {
	if len(b) < headerBytes {
		return inproc.Letter{}, fault.New(fault.Runtime, "parts", "", "rank %d sent a letter of %d bytes", source, len(b)).
			Then("run the same siafu on all ranks")
	}
	return inproc.Letter{
		Group: binary.LittleEndian.Uint64(b), Tag: binary.LittleEndian.Uint64(b[8:]), Seq: int(binary.LittleEndian.Uint64(b[16:])),
		From: int(int32(binary.LittleEndian.Uint32(b[24:]))), To: int(int32(binary.LittleEndian.Uint32(b[28:]))),
		Data: b[headerBytes:],
	}, nil
}
