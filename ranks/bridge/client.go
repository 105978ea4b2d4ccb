package bridge

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"siafu/kernels/task"
	"siafu/lambda"
	"siafu/ranks/world"
)

// Client is a graph rank's side of a bridge: a tensor.Transport. Its methods are safe
// for several goroutines.
type Client struct {
	comm    world.Comm
	bridge  int // its member
	outbox  *world.Outbox
	answers chan task.Answer
	closing chan struct{} // closed by Close
	over    sync.Once
	hearing sync.WaitGroup
}

// NewClient returns the side that this member of comm has of the bridge at another member.
func NewClient(comm world.Comm, bridge int) *Client {
	return &Client{
		comm: comm, bridge: bridge, outbox: world.NewOutbox(comm),
		answers: make(chan task.Answer), closing: make(chan struct{}),
	}
}

// Begin says of which network the tasks to come are, and waits until the bridge is
// ready for them; it comes before all of them. Its error is the bridge's, where that
// can have none done.
func (c *Client) Begin(n lambda.Network) error {
	var no refusal
	if err := c.ask(begin.message(n), &no); err != nil {
		return err
	}
	if no.Text == "" {
		c.hearing.Go(c.hear)
	}
	return no.err()
}

// Send implements tensor.Transport.
func (c *Client) Send(message []byte) error { return c.post(send.seal(message)) }

// InvokeAhead says that an attempt at a task will be sent, so that a function can be started
// for it.
func (c *Client) InvokeAhead(name task.Name) error { return c.post(ahead.message(name)) }

// Answers implements tensor.Transport.
func (c *Client) Answers() <-chan task.Answer { return c.answers }

// Report fills in what the bridge says of itself.
func (c *Client) Report(dst any) error { return c.ask(report.message(nil), dst) }

// Close implements tensor.Transport: no answer comes any more.
func (c *Client) Close() error {
	c.over.Do(func() { close(c.closing) })
	c.hearing.Wait()
	return nil
}

// Leave ends the client. The bridge ends when all its clients have left, with the first
// error that any of them leaves with.
func (c *Client) Leave(end error) error {
	_ = c.Close() // it cannot fail
	var left struct{}
	if err := c.ask(leave.message(refuse(end)), &left); err != nil {
		return err
	}
	return c.outbox.Settle()
}

func (c *Client) post(b []byte) error {
	if _, err := c.outbox.Buffer(); err != nil { // lets go of what has left
		return err
	}
	return c.outbox.Post(b, c.bridge, tagTasks)
}

// ask sends what is replied to, and waits for the reply.
func (c *Client) ask(b []byte, dst any) error {
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

// Pauses between two looks at what has come. A wait inside the communicator would be
// bounded, and there need not be anything to wait for.
const (
	minPause = 20 * time.Microsecond
	maxPause = 500 * time.Microsecond
)

// hear takes answers until the client closes, or the world fails, which others notice.
func (c *Client) hear() {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		m, ok, err := c.comm.TryRecv(c.bridge, tagAnswers)
		if err != nil {
			return
		}
		if ok {
			pause = minPause / 2
			c.hand(m.Data)
			continue
		}
		select {
		case <-c.closing:
			return
		case <-time.After(pause):
		}
	}
}

// hand hands on an answer. One that cannot be read is dropped: its task will be late.
func (c *Client) hand(m []byte) {
	a, err := answerOf(unseal(m))
	if err != nil {
		return
	}
	select {
	case c.answers <- a:
	case <-c.closing:
	}
}
