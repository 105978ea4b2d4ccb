package bridge

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"siafu/internal/wire"
	"siafu/kernels/task"
	"siafu/lambda"
	"siafu/ranks/world"
)

// Client is a graph rank's side of a bridge: a tensor.Transport. Its methods are safe
// for several goroutines.
type Client struct {
	comm      world.Comm
	bridge    int // the bridge's member of comm
	outbox    *world.Outbox
	answers   chan task.Answer
	closing   chan struct{} // closed by Close
	close     sync.Once
	receiving sync.WaitGroup
}

// NewClient returns a client of the bridge at a member of comm.
func NewClient(comm world.Comm, bridge int) *Client {
	return &Client{
		comm: comm, bridge: bridge, outbox: world.NewOutbox(comm),
		answers: make(chan task.Answer), closing: make(chan struct{}),
	}
}

// Begin sends the network of all later tasks, and waits until the bridge is ready. It comes
// before all tasks. It returns the bridge's error if the bridge cannot run them.
func (c *Client) Begin(n lambda.Network) error {
	var r refusal
	if err := c.request(message(wire.Begin, n), &r); err != nil {
		return err
	}
	if r.Text == "" {
		c.receiving.Go(c.receive)
	}
	return r.err()
}

// Send implements tensor.Transport.
func (c *Client) Send(message []byte) error { return c.post(wire.Task.Seal(message)) }

// InvokeAhead announces an attempt at a task, so that the bridge can start a function for it.
func (c *Client) InvokeAhead(name task.Name) error { return c.post(message(wire.Ahead, name)) }

// Answers implements tensor.Transport.
func (c *Client) Answers() <-chan task.Answer { return c.answers }

// Report stores the bridge's report in dst.
func (c *Client) Report(dst any) error { return c.request(message(wire.BridgeReport, nil), dst) }

// Close implements tensor.Transport. It ends the answers.
func (c *Client) Close() error {
	c.close.Do(func() { close(c.closing) })
	c.receiving.Wait()
	return nil
}

// Leave closes the client and sends the part's final error, if any, to the bridge. The bridge
// ends when all its clients have left.
func (c *Client) Leave(end error) error {
	_ = c.Close() // always nil
	if err := c.request(message(wire.Left, refuse(end)), &struct{}{}); err != nil {
		return err
	}
	return c.outbox.Settle()
}

func (c *Client) post(b []byte) error { return post(c.outbox, b, c.bridge, tagTasks) }

// request sends a message, waits for its reply and decodes it.
func (c *Client) request(b []byte, dst any) error {
	if err := c.post(b); err != nil {
		return err
	}
	in, err := c.comm.Recv(c.bridge, tagReplies)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(in.Data, dst); err != nil {
		return fmt.Errorf("invalid reply from a bridge: %w", err)
	}
	return nil
}

// Pauses between two polls for an answer. A blocking receive would fail at the wait limit of
// the communicator, but a run may have no tasks for longer.
const (
	minPause = 20 * time.Microsecond
	maxPause = 500 * time.Microsecond
)

// receive receives answers until the client closes or the world fails. Other goroutines
// report that failure.
func (c *Client) receive() {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		m, ok, err := c.comm.TryRecv(c.bridge, tagAnswers)
		if err != nil {
			return
		}
		if ok {
			pause = minPause / 2
			c.forward(m.Data)
			continue
		}
		select {
		case <-c.closing:
			return
		case <-time.After(pause):
		}
	}
}

// forward forwards an answer. It drops an unreadable one, and its task times out.
func (c *Client) forward(m []byte) {
	k, body := wire.Unseal(m)
	a, err := answerOf(c.bridge, k, body)
	if err != nil {
		return
	}
	select {
	case c.answers <- a:
	case <-c.closing:
	}
}
