package screen

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// patience is the time that a write may take after Release.
const patience = 500 * time.Millisecond

// stream is a writer of Streams. After Release, a write that takes longer than patience is abandoned: a
// full pipe or a stopped terminal must not prevent a run from saving and ending.
type stream struct {
	of      *Terminal // nil: no terminal
	to      io.Writer
	turn    *turn
	release *release
}

// turn is the right to write. The streams of a terminal share it.
type turn struct {
	taken     chan struct{}                 // has capacity 1 and is full during a write
	abandoned atomic.Pointer[chan struct{}] // closed when the last abandoned write has returned
}

func newTurn() *turn { return &turn{taken: make(chan struct{}, 1)} }

// stuck reports whether an abandoned write has not returned.
func (t *turn) stuck() bool {
	returned := t.abandoned.Load()
	if returned == nil {
		return false
	}
	select {
	case <-*returned:
		return false
	default:
		return true
	}
}

// release is the state of Release.
type release struct {
	requested chan struct{} // closed
	once      sync.Once
}

// Release lets the writers of Streams abandon writes that do not end. w is one of them, or another writer, which is
// not changed.
func Release(w io.Writer) {
	if s, ok := w.(*stream); ok {
		s.release.once.Do(func() { close(s.release.requested) })
	}
}

// Write implements io.Writer. It copies b, because an abandoned write may continue later.
func (s *stream) Write(b []byte) (n int, err error) {
	if !s.begin() {
		return len(b), nil
	}
	var written int
	var failed error
	returned, own := make(chan struct{}), bytes.Clone(b)
	go func() {
		written, failed = s.put(own)
		<-s.turn.taken
		close(returned)
	}()
	select {
	case <-returned:
		return written, failed
	case <-s.release.requested:
	}
	select {
	case <-returned:
		return written, failed
	case <-time.After(patience):
		s.turn.abandoned.Store(&returned)
		return len(b), nil
	}
}

// begin waits for the turn. It returns false if this write is abandoned.
func (s *stream) begin() bool {
	select {
	case s.turn.taken <- struct{}{}:
		return true
	default:
	}
	select {
	case s.turn.taken <- struct{}{}:
		return true
	case <-s.release.requested:
	}
	if s.turn.stuck() {
		return false
	}
	select {
	case s.turn.taken <- struct{}{}:
		return true
	case <-time.After(patience):
		return false
	}
}

// put writes. On a terminal it first removes a line that may be overwritten, and never fails, so that a
// run continues if its terminal is closed.
func (s *stream) put(b []byte) (int, error) {
	if s.of == nil {
		return s.to.Write(b)
	}
	if s.of.live && !bytes.HasPrefix(b, []byte(erase)) {
		_, _ = io.WriteString(s.of.file, erase)
	}
	_, _ = s.to.Write(b)
	if len(b) > 0 {
		last := b[bytes.LastIndexByte(b, '\n')+1:]
		s.of.live = bytes.HasPrefix(last, []byte(erase)) && len(last) > len(erase)
	}
	return len(b), nil
}
