package alive

import (
	"cmp"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"siafu/internal/wire"
)

// hello begins a connection. It names both ranks: an address such as that of a bridge for containers may
// lead to another rank on this host. The other rank replies with a refusal: its length and text, where
// length 0 accepts the connection.
type hello struct {
	Token    token
	From, To int
	Guest    uint64 // ID of the guest, 0 for a rank of the start
	Stream   bool   // the connection is the Stream of the guest
}

// guestRank is From in the hello of a guest.
const guestRank = -1

// helloBytes is the size of the fixed part of hello: the token and a header.
var helloBytes = len(token{}) + wire.Hello.HeaderBytes()

// mostRequest is the maximal length of the request that follows.
const mostRequest = 1 << 20

// encode returns the fixed part, with the length of the request.
func (h hello) encode(more int) []byte {
	m := wire.Message{Kind: wire.Hello, Numbers: wire.Numbers{h.From, h.To, int(h.Guest)}}
	if h.Stream {
		m.Note = 1
	}
	return m.AppendHeader(h.Token[:], more)
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
	m, n, err := wire.Header("alive", guestRank, b[at:], wire.Hello, wire.Hello)
	if err != nil || n > mostRequest {
		return h, nil, cmp.Or(err, errors.New("malformed greeting"))
	}
	h.From, h.To, h.Guest, h.Stream = m.Numbers[0], m.Numbers[1], uint64(m.Numbers[2]), m.Note != 0
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
