package endpoint

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// memory is N bytes of memory. Waiters are served in order, so that small messages do not starve a
// large one.
type memory struct {
	size int64
	free *semaphore.Weighted

	mu         sync.Mutex
	held, most int64 // bytes in use, and their maximum so far
	waiting    int   // calls of reserve
}

func newMemory(size int64) *memory { return &memory{size: size, free: semaphore.NewWeighted(size)} }

// reserve waits for n bytes, which are at most the size.
func (r *memory) reserve(ctx context.Context, n int64) error {
	r.count(0, 1)
	if err := r.free.Acquire(ctx, n); err != nil {
		r.count(0, -1)
		return err
	}
	r.count(n, -1)
	return nil
}

func (r *memory) release(n int64) {
	r.count(-n, 0) // first, so that held never exceeds the size
	r.free.Release(n)
}

func (r *memory) count(bytes int64, waiting int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held += bytes
	r.most = max(r.most, r.held)
	r.waiting += waiting
}

// now returns the bytes in use, and their maximum so far.
func (r *memory) now() (held, most int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held, r.most
}
