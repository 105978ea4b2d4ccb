package protocol

import (
	"fmt"
	"slices"

	"siafu/internal/mapped"
	"siafu/internal/wire"
)

// Message is one message. From and To are ranks of the world, Interval counts
// from 0 on each rank, epochs and versions count from 1.
type Message struct {
	Type     wire.Kind
	From, To int
	Epoch    int
	Interval int
	Layer    int
	Version  int
	Load     int // number of intervals whose gradients the server waits for
	Count    int
	// in Weights: request to the server's process (package signals); to a server: 1 once the rank has carried
	// out the request
	Ask    uint8
	Values []float32
}

// Encode appends the wire form of m to dst. It does not contain sender and receiver, because the
// transport knows them.
func Encode(dst []byte, m Message) []byte {
	w := wire.Message{
		Kind: m.Type, Note: m.Ask, Body: mapped.Bytes(m.Values),
		Numbers: wire.Numbers{m.Epoch, m.Interval, m.Layer, m.Version, m.Load, m.Count},
	}
	return w.Append(dst)
}

// Decode reads the wire form of a message from rank from to rank to. Its values are stored in buffer
// if that is large enough, otherwise in new memory.
func Decode(b []byte, from, to int, buffer []float32) (Message, error) {
	w, err := wire.Open("server", from, b, wire.Fetch, wire.End)
	if err != nil {
		return Message{}, err
	}
	x := w.Numbers
	m := Message{
		Type: w.Kind, Ask: w.Note, From: from, To: to, Epoch: x[0], Interval: x[1], Layer: x[2],
		Version: x[3], Load: x[4], Count: x[5],
	}
	if n := len(w.Body) / 4; n > 0 {
		m.Values = slices.Grow(buffer[:0], n)[:n]
		copy(mapped.Bytes(m.Values), w.Body)
	}
	return m, nil
}

// broken returns the error that the sender of m broke the protocol.
func broken(op string, m Message, format string, args ...any) error {
	return wire.Mismatch(op, "rank %d: %v, interval %d, epoch %d, layer %d: %s",
		m.From, m.Type, m.Interval, m.Epoch, m.Layer, fmt.Sprintf(format, args...))
}
