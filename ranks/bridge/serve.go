package bridge

import (
	"cmp"
	"encoding/json"
	"errors"
	"sync"

	"siafu/internal/wire"
	"siafu/kernels/task"
	"siafu/lambda"
	"siafu/lambda/pool"
	"siafu/ranks/tensor"
	"siafu/ranks/world"
)

// Options are the options of a bridge.
type Options struct {
	Comm  world.Comm // all members of the run, without a wait limit: a run may have no tasks for long
	Parts []int      // the members that this bridge serves
	// Open makes the transport of a part's tasks. The bridge closes it. The part receives
	// Open's error.
	Open   func(part int, n lambda.Network) (tensor.Transport, error)
	Report func() any      // returns the bridge's report for a part that requests it
	At     func(epoch int) // called for each task received
}

// Bridge serves the clients of some parts.
type Bridge struct {
	o         Options
	outbox    *world.Outbox
	clients   map[int]*served // the parts that have begun and not left
	answering sync.WaitGroup

	mu     sync.Mutex
	freed  *sync.Cond
	failed error             // the world's, when sending an answer
	held   map[task.Name]int // bytes of attempts without an answer
	bytes  int               // the sum of held
}

// served is a part with its own transport.
type served struct {
	part      int
	transport tensor.Transport
	left      chan struct{}
}

// maxHeld limits the bytes of tasks in a bridge. A bridge that holds more receives no
// messages, and they stay at the graph ranks. A single task may be larger.
const maxHeld = 1 << 30

// Run serves until all parts have left, and returns the first final error of a part as end.
// err is a failure of the world.
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

// serve handles messages until all parts have left, and returns the first final error of one.
func (b *Bridge) serve() (end, err error) {
	for here := len(b.o.Parts); here > 0; {
		if err := b.waitForSpace(); err != nil {
			return nil, err
		}
		m, err := b.o.Comm.Recv(world.Any, tagTasks)
		if err != nil {
			return nil, err
		}
		k, body := wire.Unseal(m.Data)
		if k == wire.Left {
			here--
			end = cmp.Or(end, leftWith(m.Source, body))
		}
		if err := b.handle(m.Source, k, body); err != nil {
			return nil, err
		}
	}
	return end, nil
}

// leftWith returns the final error of a part.
func leftWith(from int, body []byte) error {
	var r refusal
	if err := json.Unmarshal(body, &r); err != nil {
		return wire.Damaged("bridge", from, wire.Left, "%v", err)
	}
	return r.err()
}

// waitForSpace waits until the bridge may hold another task.
func (b *Bridge) waitForSpace() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.bytes >= maxHeld && b.failed == nil {
		b.freed.Wait()
	}
	return b.failed
}

// handle handles a message.
func (b *Bridge) handle(from int, k wire.Kind, body []byte) error {
	c := b.clients[from]
	switch {
	case k == wire.Left:
		if c != nil {
			b.close(c)
		}
		return b.reply(from, struct{}{})
	case k == wire.BridgeReport:
		return b.reply(from, b.o.Report())
	case k == wire.Begin && c == nil:
		return b.reply(from, refuse(b.begin(from, body)))
	case k == wire.Task && c != nil:
		return b.send(c, body)
	case k == wire.Ahead && c != nil:
		return b.ahead(c, body)
	}
	return wire.Unexpected("bridge", from, k)
}

func (b *Bridge) reply(part int, v any) error { return post(b.outbox, encode(v), part, tagReplies) }

// begin makes the transport of a part.
func (b *Bridge) begin(part int, body []byte) error {
	var n lambda.Network
	if err := json.Unmarshal(body, &n); err != nil {
		return wire.Damaged("bridge", part, wire.Begin, "%v", err)
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

// close closes the transport of a part and releases its attempts.
func (b *Bridge) close(c *served) {
	delete(b.clients, c.part)
	close(c.left)
	_ = c.transport.Close() // the part has left, so its failure does not matter
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.held {
		if name.Part == c.part {
			b.release(name)
		}
	}
}

// send sends a task to the part's transport, and a failure to the part, which decides whether it
// ends the run.
func (b *Bridge) send(c *served, message []byte) error {
	name, err := task.NameOf(message)
	if err != nil { // it is damaged and will time out
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

// ahead starts a function for a later task, if the transport can.
func (b *Bridge) ahead(c *served, body []byte) error {
	early, ok := c.transport.(tensor.AheadInvoker)
	if !ok {
		return nil
	}
	var name task.Name
	if err := json.Unmarshal(body, &name); err != nil {
		return wire.Damaged("bridge", c.part, wire.Ahead, "%v", err)
	}
	if err := early.InvokeAhead(name); err != nil {
		return b.give(c, task.Answer{Failed: &task.Failure{Name: name, Err: err}})
	}
	return nil
}

// answer forwards the transport's answers to a part until the part leaves.
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
	b.releaseAnswered(a)
	for _, m := range messagesOf(a) {
		if err := post(b.outbox, m, c.part, tagAnswers); err != nil {
			return err
		}
	}
	return nil
}

// releaseAnswered releases the attempt that an answer ends.
func (b *Bridge) releaseAnswered(a task.Answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.Failed != nil {
		b.release(a.Failed.Name)
	}
	if name, err := task.NameOf(a.Result); a.Result != nil && err == nil {
		b.release(name)
	}
}

// release subtracts an attempt from the held bytes. The caller holds mu.
func (b *Bridge) release(name task.Name) {
	b.bytes -= b.held[name]
	delete(b.held, name)
	b.freed.Broadcast()
}

// post posts a message, and frees sent ones.
func post(o *world.Outbox, m []byte, to, tag int) error {
	return o.Send(to, tag, func([]byte) []byte { return m })
}
