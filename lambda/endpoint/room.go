package endpoint

import (
	"context"
	"slices"
	"sync"
)

// room is a semaphore for N bytes of memory. Waiters are served in order, so that small
// messages do not starve a large one.
//
//	0 <= held <= most <= size
type room struct {
	size int64

	mu         sync.Mutex
	held, most int64 // now, and up to now
	row        []*waiting
}

type waiting struct {
	n     int64
	there chan struct{} // closed when its bytes are allocated
}

// take waits for n bytes, at most the size of the room.
func (r *room) take(ctx context.Context, n int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &waiting{n, make(chan struct{})}
	r.mu.Lock()
	r.row = append(r.row, w)
	r.serve()
	r.mu.Unlock()
	select {
	case <-w.there:
		return nil
	case <-ctx.Done():
		r.leave(w)
		return ctx.Err()
	}
}

// leave removes a waiter from the queue, or returns its bytes if it was just served.
func (r *room) leave(w *waiting) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.row, w); i >= 0 {
		r.row = slices.Delete(r.row, i, i+1)
	} else {
		r.held -= w.n
	}
	r.serve()
}

// give returns n bytes.
func (r *room) give(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held -= n
	r.serve()
}

// serve gives bytes to waiters, in order. Called with the lock.
func (r *room) serve() {
	for len(r.row) > 0 && r.held+r.row[0].n <= r.size {
		r.held += r.row[0].n
		r.most = max(r.most, r.held)
		close(r.row[0].there)
		r.row = r.row[1:]
	}
}

// now returns the bytes in use, and their maximum so far.
func (r *room) now() (held, most int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held, r.most
}
