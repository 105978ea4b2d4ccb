package inproc

import (
	"slices"
	"sync"

	"siafu/ranks/world"
)

// mailbox stores the messages that a rank has not received yet, in the order of sending.
type mailbox struct {
	mu      sync.Mutex
	queue   []world.Message
	arrived chan struct{} // not nil while a rank waits; closed by the next message
}

func (b *mailbox) put(m world.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, m)
	if b.arrived != nil {
		close(b.arrived)
		b.arrived = nil
	}
}

// next returns a channel that the next message closes.
func (b *mailbox) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.arrived == nil {
		b.arrived = make(chan struct{})
	}
	return b.arrived
}

// take removes the first message that matches.
func (b *mailbox) take(src, tag int) (m world.Message, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, m := range b.queue {
		if (src == world.Any || src == m.Source) && (tag == world.Any || tag == m.Tag) {
			b.queue = slices.Delete(b.queue, i, i+1)
			return m, true
		}
	}
	return m, false
}
