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

// The messages between graph ranks and servers, among servers, and among graph ranks. The
// fields that each uses are in brackets.
const (
	Fetch      Type = iota + 1 // graph rank → server: weights for a forward pass [Interval, Epoch, Version: the one that the rank holds, 0: none, Count: 1 if no version before Epoch will do]
	FetchStash                 // graph rank → server: the same again for the backward pass [the same]
	Weights                    // server → graph rank [Interval, Epoch, Version, Load, Values: none where the rank holds that version]
	Gradient                   // graph rank → server [Interval, Epoch, Layer, Values]
	Close                      // graph rank → server: all intervals have chosen [Epoch, Count: those that chose this server]
	Sum                        // server → server: sum of the sender's gradients [Epoch, Layer, Count: summands, Values: none of 0]
	Pull                       // graph rank → server: the latest weights once Version is there, not stashed [Version]
	Leave                      // graph rank → server: I am done []
	Finished                   // graph rank → graph rank: all my intervals have finished Epoch [Epoch]
	State                      // graph rank → server: the optimiser's state once Version is there [Version]; and the answer [Version, Values: slot after slot]
	End                        // graph rank → eager server: no epoch after the current one [Epoch: the last reported one]
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
	Load     int // intervals whose gradients the server waits for
	Count    int
	Ask      uint8 // of Weights: the request to the server's process, as in package signals; to a server: 1 if it has been done
	Values   []float32
}

// headerLen is the length of an encoded message before its values: type, Ask, two zero bytes,
// then 32 bits each, little-endian: epoch, interval, layer, version, load, count, number of
// values.
const headerLen = 32

// Encode appends the wire form of m to dst. Sender and receiver are not in it:
// the transport knows them.
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

// Decode reads the wire form of a message that rank from sent to rank to. Its values are
// stored in room if that is large enough, else in new memory.
func Decode(b []byte, from, to int, room []float32) (Message, error) {
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
		m.Values = slices.Grow(room[:0], n)[:n]
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
