package refresh

import (
	"encoding/binary"

	"siafu/halo"
	"siafu/internal/fault"
)

// A message of Bounded on the wire, numbers little-endian:
//
//	offset  bytes
//	0       1     kind: 64 rows of own vertices, 65 gradients of ghosts
//	1       3     zero
//	4       4     layer
//	8       4     epoch
//	12      4     the first row's place in the list that sender and receiver share
//	16      4     rows
//	20            a block of package codec
const (
	kindRows    = 64
	kindGrads   = 65
	headerBytes = 20
)

// IsRowMessage reports whether a message belongs to a Bounded. Other messages with the same tag
// start with another byte.
func IsRowMessage(message []byte) bool {
	return len(message) > 0 && (message[0] == kindRows || message[0] == kindGrads)
}

// message is rows of a slot.
type message struct {
	slot        halo.Slot
	first, rows int
	block       []byte
}

// header appends the message header, which precedes the block.
func (m *message) header(dst []byte) []byte {
	kind := byte(kindRows)
	if m.slot.Backward {
		kind = kindGrads
	}
	dst = append(dst, kind, 0, 0, 0)
	for _, v := range [...]int{m.slot.Layer, m.slot.Epoch, m.first, m.rows} {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
	}
	return dst
}

// read parses a message from rank from. Its block is a slice of b.
func read(b []byte, from int) (message, error) {
	if len(b) < headerBytes || !IsRowMessage(b) || b[1]|b[2]|b[3] != 0 {
		return message{}, fault.New(fault.Runtime, "halo", "", "corrupt message of %d bytes from rank %d", len(b), from).
			Then("run the same siafu on all ranks")
	}
	number := func(at int) int { return int(binary.LittleEndian.Uint32(b[at:])) }
	return message{
		slot:  halo.Slot{Layer: number(4), Epoch: number(8), Backward: b[0] == kindGrads},
		first: number(12), rows: number(16), block: b[headerBytes:],
	}, nil
}
