package bridge

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"siafu/kernels/task"
	"siafu/lambda"
	"siafu/lambda/pool"
	"siafu/ranks/tensor"
	"siafu/ranks/world"
)

// Options say what a bridge is to do.
type Options struct {
	Comm  world.Comm // of the run's whole world, with no bound on waits: a run may need nothing for long
	Parts []int      // members whose tasks it has done
	// Open makes the transport of a part's tasks, which the bridge closes. Its error
	// is the part's.
	Open func(part int, n lambda.Network) (tensor.Transport, error)
	Say  func() any      // what the bridge says of itself, to a part that asks
	At   func(epoch int) // called when a task comes
}

// Bridge serves the clients of some parts.
type Bridge struct {
	o         Options
	outbox    *world.Outbox
	clients   map[int]*served // those that have begun and not left
	answering sync.WaitGroup

	mu     sync.Mutex
	freed  *sync.Cond
	failed error             // of the world, when an answer was to be sent
	held   map[task.Name]int // bytes of attempts without an answer
	bytes  int               // of all of them
}

// served is a part whose tasks are done by a transport of its own.
type served struct {
	part      int
	transport tensor.Transport
	left      chan struct{}
}

// most is how many bytes of tasks a bridge holds at a time. While it has more it takes
// no message, and graph ranks keep theirs. A single task may be larger.
const most = 1 << 30

// Run serves until all parts have left, and returns what they leave with. It fails with
// the world.
func Run(o Options) (end, err error) {
	b := &Bridge{o: o, outbox: world.NewOutbox(o.Comm), clients: map[int]*served{}, held: map[task.Name]int{}}
	b.freed = sync.NewCond(&b.mu)
	end, err = b.serve()
	for _, c := range b.clients {
		b.close(c)
	}
	b.answering.Wait()
	if err == nil {
		err = b.outbox.Settle()
	}
	return end, err
}

// serve takes messages until all parts have left, and gives the first error that one
// has left with.
func (b *Bridge) serve() (end, err error) {
	for here := len(b.o.Parts); here > 0; {
		if err := b.room(); err != nil {
			return nil, err
		}
		m, err := b.o.Comm.Recv(world.Any, tagTasks)
		if err != nil {
			return nil, err
		}
		k, body := unseal(m.Data)
		if k == leave {
			here--
			end = cmp.Or(end, leftWith(body))
		}
		if err := b.take(m.Source, k, body); err != nil {
			return nil, fmt.Errorf("from member %d: %w", m.Source, err)
		}
	}
	return end, nil
}

// leftWith returns the error that a part leaves with.
func leftWith(body []byte) error {
	var r refusal
	if err := json.Unmarshal(body, &r); err != nil {
		return unexpected(leave, body)
	}
	return r.err()
}

// room waits until there is room for another task.
func (b *Bridge) room() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.bytes >= most && b.failed == nil {
		b.freed.Wait()
	}
	return b.failed
}

// take does what a message asks for.
func (b *Bridge) take(from int, k kind, body []byte) error {
	c := b.clients[from]
	switch {
	case k == leave:
		if c != nil {
			b.close(c)
		}
		return b.post(reply(struct{}{}), from, tagReplies)
	case k == report:
		return b.post(reply(b.o.Say()), from, tagReplies)
	case k == begin && c == nil:
		return b.post(reply(refuse(b.begin(from, body))), from, tagReplies)
	case k == send && c != nil:
		return b.send(c, body)
	case k == ahead && c != nil:
		return b.ahead(c, body)
	}
	return unexpected(k, body)
}

// begin makes the transport of a part.
func (b *Bridge) begin(part int, body []byte) error {
	var n lambda.Network
	if err := json.Unmarshal(body, &n); err != nil {
		return unexpected(begin, body)
	}
	t, err := b.o.Open(part, n)
	if err != nil {
		return err
	}
	c := &served{part, t, make(chan struct{})}
	b.clients[part] = c
	b.answering.Go(func() { b.answer(c) })
	return nil
}

// close ends the transport of a part.
func (b *Bridge) close(c *served) {
	delete(b.clients, c.part)
	close(c.left)
	_ = c.transport.Close() // nobody waits for anything of it
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.held {
		if name.Part == c.part {
			b.release(name)
		}
	}
}

// send has a task done. Which failure ends the run is for the graph rank to say, as
// where the transport is its own.
func (b *Bridge) send(c *served, message []byte) error {
	name, err := task.NameOf(message)
	if err != nil { // it is damaged: its time will pass
		return nil
	}
	b.o.At(name.Epoch)
	b.mu.Lock()
	b.held[name] += len(message)
	b.bytes += len(message)
	b.mu.Unlock()
	if err = c.transport.Send(message); err == nil {
		return nil
	}
	return b.give(c, task.Answer{Failed: &task.Failure{Name: name, Err: err, Final: !errors.As(err, new(pool.Failure))}})
}

// ahead has a function started for a task that comes later, where the transport can.
func (b *Bridge) ahead(c *served, body []byte) error {
	early, ok := c.transport.(tensor.EarlyInvoker)
	if !ok {
		return nil
	}
	var name task.Name
	if err := json.Unmarshal(body, &name); err != nil {
		return unexpected(ahead, body)
	}
	if err := early.InvokeAhead(name); err != nil {
		return b.give(c, task.Answer{Failed: &task.Failure{Name: name, Err: err}})
	}
	return nil
}

// answer gives a part what comes of its tasks, until it has left.
func (b *Bridge) answer(c *served) {
	for {
		select {
		case <-c.left:
			return
		case a, ok := <-c.transport.Answers():
			if !ok {
				return
			}
			if err := b.give(c, a); err != nil {
				b.mu.Lock()
				b.failed = err
				b.freed.Broadcast()
				b.mu.Unlock()
				return
			}
		}
	}
}

// give sends an answer to a part.
func (b *Bridge) give(c *served, a task.Answer) error {
	b.answered(a)
	for _, m := range messagesOf(a) {
		if err := b.post(m, c.part, tagAnswers); err != nil {
			return err
		}
	}
	return nil
}

// answered lets go of the attempt that an answer ends.
func (b *Bridge) answered(a task.Answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.Failed != nil {
		b.release(a.Failed.Name)
	}
	if name, err := task.NameOf(a.Result); a.Result != nil && err == nil {
		b.release(name)
	}
}

// release lets go of an attempt, with the lock.
func (b *Bridge) release(name task.Name) {
	b.bytes -= b.held[name]
	delete(b.held, name)
	b.freed.Broadcast()
}

func (b *Bridge) post(m []byte, to, tag int) error {
	if _, err := b.outbox.Buffer(); err != nil { // lets go of what has left
		return err
	}
	return b.outbox.Post(m, to, tag)
}
