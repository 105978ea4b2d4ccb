package halo

import "time"

// tender moves messages on while the caller computes between Begin and End:
// MPI does so only when it is asked, so that without it a long message would
// begin to travel when both sides are in End.
//
// Design note: a caller that asked from time to time would need no goroutine,
// but gathers are single calls, and would have to know of messages.
type tender struct {
	tick  *time.Timer
	stop  chan struct{}
	ended chan error
	under bool
}

const (
	// tendEvery is between two questions: in that time a fast link moves about
	// a megabyte.
	tendEvery = 100 * time.Microsecond
	// tendFrom is how many bytes have to be under way for it to be worth it;
	// less is sent at once.
	tendFrom = 1 << 20
)

func newTender() tender {
	return tender{stop: make(chan struct{}), ended: make(chan error, 1)}
}

// start calls move again and again, in the background.
func (t *tender) start(move func() error) {
	if t.tick == nil {
		t.tick = time.NewTimer(tendEvery)
	} else {
		t.tick.Reset(tendEvery)
	}
	t.under = true
	go t.run(move)
}

func (t *tender) run(move func() error) {
	for {
		select {
		case <-t.stop:
			t.ended <- nil
			return
		case <-t.tick.C:
		}
		if err := move(); err != nil {
			<-t.stop
			t.ended <- err
			return
		}
		t.tick.Reset(tendEvery)
	}
}

// finish returns when move is not called any more, with its error.
func (t *tender) finish() error {
	if !t.under {
		return nil
	}
	t.under = false
	t.stop <- struct{}{}
	return <-t.ended
}
