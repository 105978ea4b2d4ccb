package alive

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

// hello begins a connection. It names both ranks: an address such as that of a bridge for containers may
// lead to another rank on this host. The other rank replies with a refusal: its length and text, where
// length 0 accepts the connection.
type hello struct {
	Token    token
	From, To uint32
	Guest    uint64 // ID of the guest, 0 for a rank of the start
	Stream   bool   // the connection is the Stream of the guest
}

// guestRank is From in the hello of a guest.
const guestRank = 1<<32 - 1

// Sizes of the fixed part of hello, and limit of the request that follows.
const (
	helloBytes  = len(token{}) + 4 + 4 + 8 + 1 + 4
	mostRequest = 1 << 20
)

// encode returns the fixed part, with the length of the request.
func (h hello) encode(more int) []byte {
	b := binary.LittleEndian.AppendUint32(h.Token[:], h.From)
	b = binary.LittleEndian.AppendUint32(b, h.To)
	b = binary.LittleEndian.AppendUint64(b, h.Guest)
	stream := byte(0)
	if h.Stream {
		stream = 1
	}
	return binary.LittleEndian.AppendUint32(append(b, stream), uint32(more))
}

// readHello reads a hello with the token of this world. It reads and allocates nothing more for
// another token.
func readHello(in io.Reader, own token) (h hello, more []byte, err error) {
	b := make([]byte, helloBytes)
	if _, err := io.ReadFull(in, b); err != nil {
		return h, nil, err
	}
	at := len(h.Token)
	h.Token = token(b[:at])
	if subtle.ConstantTimeCompare(h.Token[:], own[:]) != 1 {
		return h, nil, errors.New("another token")
	}
	h.From, h.To = binary.LittleEndian.Uint32(b[at:]), binary.LittleEndian.Uint32(b[at+4:])
	h.Guest, h.Stream = binary.LittleEndian.Uint64(b[at+8:]), b[at+16] != 0
	n := binary.LittleEndian.Uint32(b[at+17:])
	if n > mostRequest {
		return h, nil, errors.New("malformed greeting")
	}
	more = make([]byte, n)
	_, err = io.ReadFull(in, more)
	return h, more, err
}

// Refusal is the error of a guest that a rank has refused.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

// accept accepts a connection.
func accept(conn net.Conn) error {
	if _, err := conn.Write([]byte{0, 0}); err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// refuse replies with a reason.
func refuse(conn net.Conn, reason string) {
	reason = reason[:min(len(reason), 1<<16-1)]
	_, _ = conn.Write(append(binary.LittleEndian.AppendUint16(nil, uint16(len(reason))), reason...))
}

// readReply returns a Refusal if the connection is refused.
func readReply(in io.Reader) error {
	var b [2]byte
	if _, err := io.ReadFull(in, b[:]); err != nil {
		return err
	}
	reason := make([]byte, binary.LittleEndian.Uint16(b[:]))
	if _, err := io.ReadFull(in, reason); err != nil {
		return err
	}
	if len(reason) > 0 {
		return &Refusal{string(reason)}
	}
	return nil
}
