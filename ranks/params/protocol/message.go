package protocol

import (
	"encoding/binary"
	"fmt"
	"slices"

	"siafu/internal/fault"
	"siafu/internal/mapped"
)

// Type is the type of a message.
type Type uint8

// The messages between graph ranks and servers, among servers, and among graph ranks. The used
// fields are in brackets, separated by semicolons; the meaning of a field is in parentheses.
const (
	Fetch      Type = iota + 1 // graph rank → server: request weights for a forward pass [Interval; Epoch; Version (the rank's, 0: none); Count (1: the version must be at least Epoch)]
	FetchStash                 // graph rank → server: request the same weights for the backward pass [as Fetch]
	Weights                    // server → graph rank [Interval; Epoch; Version; Load; Values (none if the rank has that version)]
	Gradient                   // graph rank → server [Interval; Epoch; Layer; Values]
	Close                      // graph rank → server: no further intervals of the rank will choose this server in Epoch [Epoch; Count (intervals that chose this server)]
	Sum                        // server → server: sum of the sender's gradients [Epoch; Layer; Count (summands); Values (none if Count is 0)]
	Pull                       // graph rank → server: request the latest weights from Version on, without a stash [Version]
	Leave                      // graph rank → server: the rank is done []
	Finished                   // graph rank → graph rank: all intervals of the rank have finished Epoch [Epoch]
	State                      // graph rank → server: request the optimiser's state from Version on [Version]; also the response [Version; Values (slot after slot)]
	End                        // graph rank → server of the fully asynchronous mode (Eager): end with the current epoch [Epoch (the last reported one)]
)

var names = [...]string{"", "fetch", "fetch of stash", "weights", "gradient", "close", "sum", "pull", "leave", "finished", "state", "end"}

func (t Type) String() string {
	if t < Fetch || t > End {
		return "message of unknown type"
	}
	return names[t]
}

// Message is one message. From and To are ranks of the world, Interval counts
// from 0 on each rank, epochs and versions count from 1.
type Message struct {
	Type     Type
	From, To int
	Epoch    int
	Interval int
	Layer    int
	Version  int
	Load     int // number of intervals whose gradients the server waits for
	Count    int
	Ask      uint8 // in Weights: request to the server's process (package signals); to a server: 1 once the rank has carried out the request
	Values   []float32
}

// headerLen is the length of an encoded message before its values: type, Ask, two zero bytes,
// then 32 bits each, little-endian: epoch, interval, layer, version, load, count, number of
// values.
const headerLen = 32

// Encode appends the wire form of m to dst. It does not contain sender and receiver, because the
// transport knows them.
func Encode(dst []byte, m Message) []byte {
	at := len(dst)
	dst = slices.Grow(dst, headerLen+4*len(m.Values))[:at+headerLen+4*len(m.Values)]
	b := dst[at:]
	binary.LittleEndian.PutUint32(b, uint32(m.Type)|uint32(m.Ask)<<8)
	for i, v := range [...]int{m.Epoch, m.Interval, m.Layer, m.Version, m.Load, m.Count, len(m.Values)} {
		binary.LittleEndian.PutUint32(b[4+4*i:], uint32(v))
	}
	copy(b[headerLen:], mapped.Bytes(m.Values))
	return dst
}

// Decode reads the wire form of a message from rank from to rank to. Its values are stored in buffer
// if that is large enough, otherwise in new memory.
func Decode(b []byte, from, to int, buffer []float32) (Message, error) {
	bad := func(format string, args ...any) (Message, error) {
		return Message{}, fault.New(fault.Runtime, "server", "", "message from rank %d to rank %d: "+format,
			append([]any{from, to}, args...)...).Then("run the same siafu on all ranks")
	}
	if len(b) < headerLen {
		return bad("%d bytes, fewer than its header", len(b))
	}
	word := func(i int) int { return int(binary.LittleEndian.Uint32(b[4*i:])) }
	if t := Type(b[0]); t < Fetch || t > End || b[2] != 0 || b[3] != 0 {
		return bad("type %d is unknown", word(0)&^0xff00)
	}
	n := word(7)
	if int64(len(b)-headerLen) != 4*int64(n) {
		return bad("it announces %d values but carries %d bytes", n, len(b)-headerLen)
	}
	m := Message{
		Type: Type(b[0]), Ask: b[1], From: from, To: to, Epoch: word(1), Interval: word(2), Layer: word(3),
		Version: word(4), Load: word(5), Count: word(6),
	}
	if n > 0 {
		m.Values = slices.Grow(buffer[:0], n)[:n]
		copy(mapped.Bytes(m.Values), b[headerLen:])
	}
	return m, nil
}

// broken returns the error that the sender of m broke the protocol.
func broken(op string, m Message, format string, args ...any) error {
	return fault.New(fault.Runtime, op, "", "rank %d: %v, interval %d, epoch %d, layer %d: %s",
		m.From, m.Type, m.Interval, m.Epoch, m.Layer, fmt.Sprintf(format, args...)).
		Then("run the same siafu with the same options on all ranks")
}
