package engine

import (
	"encoding/binary"
	"math"

	"siafu/graph/fault"
)

// Messages between graph ranks in bounded asynchrony, beside those of package
// async, whose first byte is below wireRows. All have one tag, so that a rank
// sees what another one sent in the order in which it was sent.
const (
	wireRows  = 64 // boundary rows of an interval, on their way to ghosts
	wireGrads = 65 // gradients of ghosts, on their way to their owner
	wireTally = 66 // what a rank knows of an epoch that it has finished, for rank 0
	wireStop  = 67 // the epoch after which all stop, from rank 0
)

// wire is one of these messages: so many rows of a layer from place first of the
// list that sender and receiver share, as a block of package codec, or numbers.
type wire struct {
	kind         byte
	layer, epoch int
	first, count int
	block        []byte
	numbers      []float64
}

// wireHeader is kind, three zeros, then layer, epoch, first, and the number of
// rows or numbers as 32 bits each.
const wireHeader = 20

// header appends what stands before a block.
func (m wire) header(dst []byte) []byte {
	dst = append(dst[:0], m.kind, 0, 0, 0)
	for _, v := range [...]int{m.layer, m.epoch, m.first, m.count} {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
	}
	return dst
}

func (m wire) encode(dst []byte) []byte {
	m.count = max(m.count, len(m.numbers))
	dst = m.header(dst)
	for _, v := range m.numbers {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	}
	return append(dst, m.block...)
}

// decodeWire reads a message from rank from. Its block lies in b.
func decodeWire(b []byte, from int) (wire, error) {
	bad := fault.New(fault.Runtime, "train", "", "a message of %d bytes from rank %d is damaged", len(b), from).
		Then("run the same siafu on all ranks")
	if len(b) < wireHeader || b[0] < wireRows || b[0] > wireStop {
		return wire{}, bad
	}
	var v [4]int
	for i := range v {
		v[i] = int(binary.LittleEndian.Uint32(b[4+4*i:]))
	}
	m := wire{kind: b[0], layer: v[0], epoch: v[1], first: v[2], count: v[3]}
	switch body := b[wireHeader:]; {
	case m.kind == wireTally && len(body) == 8*m.count:
		for i := range m.count {
			m.numbers = append(m.numbers, math.Float64frombits(binary.LittleEndian.Uint64(body[8*i:])))
		}
		m.count = 0
	case m.kind == wireStop && len(body) == 0 && m.count == 0:
	case m.kind == wireRows || m.kind == wireGrads:
		m.block = body
	default:
		return wire{}, bad
	}
	return m, nil
}
