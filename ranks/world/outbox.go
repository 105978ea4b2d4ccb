package world

import "sync"

// Sender starts to send messages, like a Comm.
type Sender interface {
	Isend(buf []byte, dst, tag int) (Request, error)
}

// Outbox sends messages without waiting for completion, and reuses the memory of sent
// messages. Several goroutines may use it concurrently.
type Outbox struct {
	sender Sender

	mu      sync.Mutex
	pending []pendingSend
	spare   [][]byte
}

// pendingSend is a message in transit, with the memory that it uses.
type pendingSend struct {
	request Request
	buffer  []byte
	to      int
}

// NewOutbox makes an outbox of a communicator or another sender.
func NewOutbox(s Sender) *Outbox { return &Outbox{sender: s} }

// Buffer returns empty memory for a message, reused from a sent message if possible.
func (o *Outbox) Buffer() ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	still := o.pending[:0]
	var failed error
	for _, l := range o.pending {
		switch gone, err := l.request.Test(); {
		case err != nil:
			failed = err // MPI may still read the memory, so it is not reused
		case gone:
			o.spare = append(o.spare, l.buffer)
		default:
			still = append(still, l)
		}
	}
	o.pending = still
	n := len(o.spare)
	if failed != nil || n == 0 {
		return nil, failed
	}
	b := o.spare[n-1]
	o.spare = o.spare[:n-1]
	return b[:0], nil
}

// Post starts to send b. The outbox owns b from then on.
func (o *Outbox) Post(b []byte, to, tag int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	r, err := o.sender.Isend(b, to, tag)
	if err == nil {
		o.pending = append(o.pending, pendingSend{r, b, to})
	}
	return err
}

// Send posts the message that encode appends to empty memory.
func (o *Outbox) Send(to, tag int, encode func(empty []byte) []byte) error {
	b, err := o.Buffer()
	if err != nil {
		return err
	}
	return o.Post(encode(b), to, tag)
}

// Settle returns when all posted messages have been sent.
func (o *Outbox) Settle() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.pending {
		if err := l.request.Wait(); err != nil {
			return err
		}
		o.spare = append(o.spare, l.buffer)
	}
	o.pending = o.pending[:0]
	return nil
}

// Settled reports whether all posted messages have been sent, except those to lost ranks. The
// memory of these stays in use.
func (o *Outbox) Settled(lost func(rank int) bool) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.pending {
		if lost(l.to) {
			continue
		}
		if gone, err := l.request.Test(); !gone || err != nil {
			return false, err
		}
	}
	o.pending = o.pending[:0]
	return true, nil
}
