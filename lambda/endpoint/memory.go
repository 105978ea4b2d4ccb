package endpoint

import (
	"context"
	"slices"
	"sync"
)

// memory is a semaphore for N bytes of memory. Waiters are served in order, so that small messages
// do not starve a large one.
type memory struct {
	size int64

	mu         sync.Mutex
	held, most int64 // bytes in use, and their maximum so far
	queue      []*waiting
}

type waiting struct {
	n     int64
	ready chan struct{} // closed when its bytes are reserved
}

// reserve waits for n bytes, which are at most the size.
func (r *memory) reserve(ctx context.Context, n int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &waiting{n, make(chan struct{})}
	r.mu.Lock()
	r.queue = append(r.queue, w)
	r.serve()
	r.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		r.leave(w)
		return ctx.Err()
	}
}

// leave removes a waiter from the queue, or returns its bytes if it was just served.
func (r *memory) leave(w *waiting) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.queue, w); i >= 0 {
		r.queue = slices.Delete(r.queue, i, i+1)
	} else {
		r.held -= w.n
	}
	r.serve()
}

// release returns n bytes.
func (r *memory) release(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held -= n
	r.serve()
}

// serve reserves bytes for waiters, in order. Called under the lock.
func (r *memory) serve() {
	for len(r.queue) > 0 && r.held+r.queue[0].n <= r.size {
		r.held += r.queue[0].n
		r.most = max(r.most, r.held)
		close(r.queue[0].ready)
		r.queue = r.queue[1:]
	}
}

// now returns the bytes in use, and their maximum so far.
func (r *memory) now() (held, most int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held, r.most
}
