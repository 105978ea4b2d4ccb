package server

import (
	"encoding/binary"
	"math"

	"siafu/graph/fault"
)

// Type says what a message is for.
type Type uint8

// The messages between graph ranks and servers, and among servers.
const (
	Pull    Type = iota + 1 // graph rank → server: the weights that epoch Epoch starts from
	Weights                 // server → graph rank: here they are, all layers
	Push                    // graph rank → server: gradient of layer Layer in epoch Epoch
	Partial                 // server → server: the sum of the sender's ranks
	Leave                   // graph rank → server: I am done
	State                   // graph rank → server: the optimiser's state that epoch Epoch starts from; and the answer, slot after slot
)

var names = [...]string{"", "pull", "weights", "push", "partial", "leave", "state"}

func (t Type) String() string {
	if t < Pull || t > State {
		return "message of unknown type"
	}
	return names[t]
}

// Message is one message. From and To are ranks of the world.
type Message struct {
	Type     Type
	From, To int
	Epoch    int
	Layer    int
	Ask      uint8     // of Weights: what has been asked of the server's process, as package signals counts; of Pull: 1 where that has been done
	Values   []float32 // weights, a gradient or a state, else nil
}

// headerLen is the length of an encoded message before its values: type,
// what is asked, two reserved bytes, epoch, layer, number of values.
const headerLen = 16

// Encode appends the wire form of m to dst. Sender and receiver are not in it:
// the transport knows them.
func Encode(dst []byte, m Message) []byte {
	var h [headerLen]byte
	h[0], h[1] = byte(m.Type), m.Ask
	binary.LittleEndian.PutUint32(h[4:], uint32(m.Epoch))
	binary.LittleEndian.PutUint32(h[8:], uint32(m.Layer))
	binary.LittleEndian.PutUint32(h[12:], uint32(len(m.Values)))
	dst = append(dst, h[:]...)
	for _, v := range m.Values {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	return dst
}

// Decode reads the wire form of a message that arrived from rank from.
func Decode(b []byte, from, to int) (Message, error) {
	bad := func(format string, args ...any) (Message, error) {
		return Message{}, fault.New(fault.Runtime, "server", "", "message from rank %d", from).
			Then(format, args...)
	}
	if len(b) < headerLen {
		return bad("it has %d bytes, fewer than its header", len(b))
	}
	m := Message{
		Type: Type(b[0]), Ask: b[1], From: from, To: to,
		Epoch: int(binary.LittleEndian.Uint32(b[4:])),
		Layer: int(binary.LittleEndian.Uint32(b[8:])),
	}
	n := int(binary.LittleEndian.Uint32(b[12:]))
	if m.Type < Pull || m.Type > State {
		return bad("its type %d is unknown", b[0])
	}
	if len(b)-headerLen != 4*n {
		return bad("it announces %d values and carries %d bytes", n, len(b)-headerLen)
	}
	if n > 0 {
		m.Values = make([]float32, n)
		for i := range m.Values {
			m.Values[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[headerLen+4*i:]))
		}
	}
	return m, nil
}
