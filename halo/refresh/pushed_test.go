package refresh_test

import (
	"fmt"
	"testing"

	"siafu/halo"
	"siafu/halo/refresh"
	"siafu/ranks/world"
)

const tagTaken = 10

// testPump is the MessagePump of a Pushed in a test: every rank polls after all have sent.
type testPump struct {
	m    *member
	p    *refresh.Pushed
	came int // messages with rows
}

func (l *testPump) Poll() error {
	for _, tag := range []int{tag, tagTaken} {
		for {
			in, ok, err := l.m.TryRecv(world.Any, tag)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if err := l.take(in, tag); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *testPump) take(in world.Message, t int) error {
	if t == tagTaken {
		if !l.p.Taken(in.Source, int(in.Data[0])) {
			return fmt.Errorf("nothing was on its way to rank %d", in.Source)
		}
		return nil
	}
	l.came++
	_, _, err := l.p.Accept(in.Source, in.Data)
	return err
}

func (l *testPump) Await() error {
	in, err := l.m.Recv(world.Any, tag)
	if err != nil {
		return err
	}
	return l.take(in, tag)
}

func (l *testPump) ConfirmStored(from, layer int) error {
	r, err := l.m.Isend([]byte{byte(layer)}, from, tagTaken)
	if err != nil {
		return err
	}
	return r.Wait()
}

func (m *member) pushed(every int) (*refresh.Pushed, *testPump) {
	p := refresh.NewPushed(refresh.BoundedOptions{
		Rank: m.Rank(), Shapes: shape(), Plan: halo.NewPlan(m.shard), Codec: m.codec, Outbox: world.NewOutbox(m), Tag: tag,
	}, every, m.team, m.arena)
	l := &testPump{m: m, p: p}
	p.Connect(l)
	return p, l
}

// push offers an epoch's rows of layer 0, and with takes stores received rows.
func (l *testPump) push(epoch int, takes bool) error {
	at := halo.Slot{Epoch: epoch}
	if err := l.p.Offer(at, show(l.m.shard.Own, epoch, 0), 0, l.m.shard.NumOwn()); err != nil {
		return err
	}
	if err := l.m.Barrier(); err != nil { // all messages are sent
		return err
	}
	if err := l.Poll(); err != nil {
		return err
	}
	if takes {
		if err := l.p.Await(at); err != nil {
			return err
		}
		if _, _, err := l.p.Take(at); err != nil {
			return err
		}
	}
	if err := l.m.Barrier(); err != nil { // and confirmations have arrived
		return err
	}
	return l.Poll()
}

func (l *testPump) ofEpoch(epoch, want int) error {
	view, err := l.p.View(halo.Slot{Epoch: epoch})
	if err != nil {
		return err
	}
	ages, err := agesOf(view)
	if err != nil {
		return err
	}
	for i, v := range l.m.shard.Ghosts {
		for k := range widths[0] {
			if got := view.Rows.Host()[i*widths[0]+k]; ages[i] != want || got != row(v, want, 0, k) {
				return fmt.Errorf("epoch %d: ghost of vertex %d has %v of epoch %d, want %v of %d", epoch, v, got,
					ages[i], row(v, want, 0, k), want)
			}
		}
	}
	return nil
}

// Rows are sent every N epochs, and the newest received rows are gathered.
func TestPushedEvery(t *testing.T) {
	data := planted(t)
	for _, every := range []int{1, 3} {
		together(t, data, "none", func(m *member) error {
			p, l := m.pushed(every)
			for epoch := 1; epoch <= 8; epoch++ {
				if err := l.push(epoch, true); err != nil {
					return err
				}
				due := (epoch-1)%every == 0
				if raw := p.TakeStats().RawBytes; raw != 0 && !due || due && raw != 4*int64(widths[0]*len(m.shard.SendRows)) {
					return fmt.Errorf("every %d, epoch %d: %d bytes", every, epoch, raw)
				}
				if err := l.ofEpoch(epoch, 1+(epoch-1)/every*every); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// A rank that takes nothing has at most one pending message from each other rank. When it
// takes again, it gets the newest rows with their owners' next epoch.
func TestPushedHeapsNothing(t *testing.T) {
	data := planted(t)
	together(t, data, "none", func(m *member) error {
		_, l := m.pushed(1)
		for epoch := 1; epoch <= 9; epoch++ {
			awake := m.Rank() > 0 || epoch == 1 || epoch > 7
			if err := l.push(epoch, awake); err != nil {
				return err
			}
			if m.Rank() > 0 {
				continue
			}
			switch want := map[int]int{1: 1, 8: 2, 9: 9}[epoch]; {
			case epoch > 1 && epoch < 8 && l.came != 2*(ranks-1):
				return fmt.Errorf("epoch %d: %d messages", epoch, l.came)
			case want > 0:
				if err := l.ofEpoch(epoch, want); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
