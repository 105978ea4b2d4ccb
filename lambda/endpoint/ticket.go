package endpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"siafu/kernels/task"
	"siafu/lambda"
)

// ticket is one attempt at one task. A request with its token advances it by one stage, in the
// order of stages.
type ticket struct {
	name      task.Name
	token     string
	most      int64           // maximum size of the result in bytes
	take      func([]byte)    // receives the result
	delivered chan struct{}   // closed when the task is delivered
	context   context.Context // ends with the ticket
	cancel    context.CancelFunc

	// Guarded by the endpoint's lock:
	stage   stage
	message []byte // the task, from Deliver until it is fetched or the ticket ends
	why     Refusal
	expiry  *time.Timer
}

type stage int

const (
	opened stage = iota
	fetched
	answering
	answered
)

// Errors of tickets.
var (
	ErrOpen     = errors.New("endpoint: the attempt has a ticket already")
	ErrNoTicket = errors.New("endpoint: the attempt has no ticket that waits for its task")
	ErrClosed   = errors.New("endpoint: closed")
)

// Expect opens the ticket of an attempt. The result has at most the given number of bytes; 0: all
// memory for results. The returned Pull is for one function. take receives the result, at most
// once, on its own goroutine. The result occupies memory until take returns, and Close waits for
// take.
func (e *Endpoint) Expect(name task.Name, most int64, take func(result []byte)) (lambda.Pull, error) {
	t := &ticket{name: name, token: rand.Text(), most: most, take: take, delivered: make(chan struct{})}
	if most <= 0 || most > e.answers.size {
		t.most = e.answers.size
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return lambda.Pull{}, ErrClosed
	case e.byName[name] != nil:
		return lambda.Pull{}, ErrOpen
	}
	t.context, t.cancel = context.WithCancel(e.context)
	e.byName[name], e.tokens[t.token] = t, t
	t.expiry = time.AfterFunc(e.o.Life, func() { e.end(t, Expired) })
	return lambda.Pull{Address: e.address, Fingerprint: e.fingerprint, Token: t.token, MostResult: t.most}, nil
}

// MostTask returns the maximum size of a task in bytes.
func (e *Endpoint) MostTask() int64 { return e.tasks.size }

// Deliver provides the task of a ticket. The endpoint may keep the message until the ticket ends.
// Deliver waits for memory until ctx or the ticket ends. A task of more than MostTask bytes is a
// fault of kind Config.
func (e *Endpoint) Deliver(ctx context.Context, name task.Name, message []byte) error {
	n := int64(len(message))
	if n > e.tasks.size {
		return lambda.TooLarge("a task", n, e.tasks.size)
	}
	t, err := e.expecting(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.context, cancel)()
	if err := e.tasks.reserve(ctx, n); err != nil {
		if _, gone := e.expecting(name); gone != nil {
			return gone
		}
		return fmt.Errorf("endpoint: no memory for a task of %d bytes: %w", n, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.checkOpen(t); err != nil {
		e.tasks.release(n)
		return err
	}
	t.message = message
	close(t.delivered)
	return nil
}

// expecting returns the ticket of an attempt whose task has not been delivered.
func (e *Endpoint) expecting(name task.Name) (*ticket, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.byName[name]
	return t, e.checkOpen(t)
}

// checkOpen returns an error unless the ticket is open and its task has not been delivered. Called
// under the lock.
func (e *Endpoint) checkOpen(t *ticket) error {
	switch {
	case e.closed:
		return ErrClosed
	case t == nil || e.byName[t.name] != t || t.hasTask():
		return ErrNoTicket
	}
	return nil
}

// hasTask reports whether the task has been delivered. Called under the lock.
func (t *ticket) hasTask() bool {
	select {
	case <-t.delivered:
		return true
	default:
		return false
	}
}

// Withdraw ends a ticket. It reports whether the result of the ticket was accepted; Expect's take
// receives that result. Later requests with the token are refused. Without a ticket it does
// nothing.
func (e *Endpoint) Withdraw(name task.Name) (arrived bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.byName[name]
	if t == nil {
		return false
	}
	e.close(t, Withdrawn)
	return t.stage == answered
}

// end ends a ticket unless it has already ended.
func (e *Endpoint) end(t *ticket, why Refusal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byName[t.name] == t {
		e.close(t, why)
	}
}

// close ends an open ticket. Called under the lock.
func (e *Endpoint) close(t *ticket, why Refusal) {
	t.expiry.Stop()
	delete(e.byName, t.name)
	delete(e.tokens, t.token)
	if t.message != nil {
		e.tasks.release(int64(len(t.message)))
		t.message = nil
	}
	t.why = why
	if t.stage == answered {
		t.why = Reused
	}
	e.ended.add(t.token, t.why)
	t.cancel()
}

// advance moves the ticket of a token from one stage to the next. If the ticket is in another stage
// or has ended, why is the reason.
func (e *Endpoint) advance(token string, from stage) (t *ticket, why Refusal, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t = e.tokens[token]
	switch {
	case e.closed:
		return nil, Closed, false
	case token == "":
		return nil, NoToken, false
	case t == nil:
		return nil, e.ended.of(token), false
	case t.stage < from:
		return nil, Early, false
	case t.stage > from:
		return nil, Reused, false
	}
	t.stage++
	return t, 0, true
}

// takeTask removes the task from its ticket for the function that fetches it. The caller releases
// its memory.
func (e *Endpoint) takeTask(t *ticket) (message []byte, why Refusal, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byName[t.name] != t {
		return nil, t.why, false
	}
	message, t.message = t.message, nil
	return message, 0, true
}

// accept records that the result of a ticket has arrived, unless the ticket has ended meanwhile.
func (e *Endpoint) accept(t *ticket, n int64) (why Refusal, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byName[t.name] != t {
		return t.why, false
	}
	t.stage = answered
	e.stats.Answered++
	e.stats.BytesIn += n
	return 0, true
}

// reasons stores why the last tickets ended, for refusals.
type reasons struct {
	why  map[string]Refusal // by token
	ring [4096]string
	next int
}

func (g *reasons) add(token string, why Refusal) {
	delete(g.why, g.ring[g.next])
	g.ring[g.next], g.why[token] = token, why
	g.next = (g.next + 1) % len(g.ring)
}

// of returns why the ticket of a token ended, or Wrong if it is unknown.
func (g *reasons) of(token string) Refusal {
	if why, ok := g.why[token]; ok {
		return why
	}
	return Wrong
}
