package engine

import (
	"encoding/binary"
	"math"

	"siafu/internal/fault"
)

// Messages between graph ranks in the asynchronous modes, in addition to the messages of package
// protocol and of refresh.Bounded. The first byte of those is below wireTally. All messages have one
// tag, so a rank receives another rank's messages in the order of sending.
const (
	wireTally      = 66 // a rank's results of a finished epoch, for rank 0
	wireStop       = 67 // the last epoch of all ranks, from rank 0
	wireRowsStored = 68 // fully asynchronous: the rows of a layer are stored; epoch has the layer
	wireLeaving    = 69 // fully asynchronous: the last message of a rank in this stretch
)

// wireMessage is a decoded message.
type wireMessage struct {
	kind    byte
	epoch   int
	numbers []float64
}

// wireHeader is the size of the header in bytes: the kind, seven zero bytes, and then the epoch, a
// zero and the number of values with 32 bits each.
const wireHeader = 20

func (m wireMessage) encode(dst []byte) []byte {
	dst = append(dst[:0], m.kind, 0, 0, 0)
	for _, v := range [...]int{0, m.epoch, 0, len(m.numbers)} {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
	}
	for _, v := range m.numbers {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	}
	return dst
}

// decodeWire decodes a message from rank from.
func decodeWire(b []byte, from int) (wireMessage, error) {
	bad := fault.New(fault.Runtime, "train", "", "corrupt message of %d bytes from rank %d", len(b), from).
		Then("run the same siafu on all ranks")
	if len(b) < wireHeader {
		return wireMessage{}, bad
	}
	number := func(at int) int { return int(binary.LittleEndian.Uint32(b[at:])) }
	m, count, body := wireMessage{kind: b[0], epoch: number(8)}, number(16), b[wireHeader:]
	switch {
	case b[1]|b[2]|b[3] != 0 || number(4) != 0 || number(12) != 0:
		return wireMessage{}, bad
	case m.kind == wireTally && len(body) == 8*count:
		for i := range count {
			m.numbers = append(m.numbers, math.Float64frombits(binary.LittleEndian.Uint64(body[8*i:])))
		}
	case m.kind >= wireStop && m.kind <= wireLeaving && len(body) == 0 && count == 0:
	default:
		return wireMessage{}, bad
	}
	return m, nil
}
