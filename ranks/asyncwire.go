package ranks

import (
	"encoding/binary"
	"math"

	"siafu/graph/fault"
	"siafu/graph/mapped"
)

// Messages between graph ranks in bounded asynchrony, beside those of package
// async, whose first byte is below wireRows. All have one tag, so that a rank
// sees what another one sent in the order in which it was sent.
const (
	tagAsync = 3

	wireRows  = 64 // boundary rows of an interval, on their way to ghosts
	wireGrads = 65 // gradients of ghosts, on their way to their owner
	wireTally = 66 // what a rank knows of an epoch that it has finished, for rank 0
	wireStop  = 67 // the epoch after which all stop, from rank 0
)

// wire is one of these messages: rows of a layer from place First of the list
// that sender and receiver share, or numbers.
type wire struct {
	kind         byte
	layer, epoch int
	first, width int
	rows         []float32
	numbers      []float64
}

// wireHeader is kind, three zeros, then layer, epoch, first, width and the
// number of values as 32 bits each.
const wireHeader = 24

func (m wire) encode(dst []byte) []byte {
	dst = append(dst[:0], m.kind, 0, 0, 0)
	for _, v := range [...]int{m.layer, m.epoch, m.first, m.width, len(m.rows) + len(m.numbers)} {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
	}
	for _, v := range m.numbers {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	}
	return append(dst, mapped.Bytes(m.rows)...)
}

// decodeWire reads a message from rank from. Its rows lie in b.
func decodeWire(b []byte, from int) (wire, error) {
	bad := fault.New(fault.Runtime, "train", "", "a message of %d bytes from rank %d is damaged", len(b), from).
		Then("run the same siafu on all ranks")
	if len(b) < wireHeader || b[0] < wireRows || b[0] > wireStop {
		return wire{}, bad
	}
	var v [5]int
	for i := range v {
		v[i] = int(binary.LittleEndian.Uint32(b[4+4*i:]))
	}
	m := wire{kind: b[0], layer: v[0], epoch: v[1], first: v[2], width: v[3]}
	values, body := v[4], b[wireHeader:]
	switch {
	case m.kind == wireTally && len(body) == 8*values:
		for i := range values {
			m.numbers = append(m.numbers, math.Float64frombits(binary.LittleEndian.Uint64(body[8*i:])))
		}
	case m.kind != wireTally && len(body) == 4*values:
		m.rows = mapped.Cast[float32](body)
	default:
		return wire{}, bad
	}
	return m, nil
}
