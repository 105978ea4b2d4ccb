package refresh

import (
	"siafu/halo"
	"siafu/internal/wire"
)

// message is rows of a slot. Its block is one of package codec.
type message struct {
	slot        halo.Slot
	first, rows int // place of the first row in the list that sender and receiver share
	block       []byte
}

// header appends the message header, which precedes the block.
func (m *message) header(dst []byte) []byte {
	w := wire.Message{Kind: wire.Rows, Numbers: wire.Numbers{m.slot.Layer, m.slot.Epoch, m.first, m.rows}}
	if m.slot.Backward {
		w.Kind = wire.RowGrads
	}
	return w.Append(dst)
}

// read parses a message from rank from. Its block is a slice of b.
func read(b []byte, from int) (message, error) {
	w, err := wire.Open("halo", from, b, wire.Rows, wire.RowGrads)
	return message{
		slot:  halo.Slot{Layer: w.Numbers[0], Epoch: w.Numbers[1], Backward: w.Kind == wire.RowGrads},
		first: w.Numbers[2], rows: w.Numbers[3], block: w.Body,
	}, err
}
