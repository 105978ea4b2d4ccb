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

// ticket is one attempt at one task. Its token lets a function take it one step
// further, in this order, and back never.
type ticket struct {
	name    task.Name
	token   string
	most    int64           // bytes of a result
	take    func([]byte)    // the result
	there   chan struct{}   // closed when the task is
	context context.Context // ends with the ticket
	cancel  context.CancelFunc

	// With the endpoint's lock:
	stage   stage
	message []byte // from Deliver until it is fetched, or the ticket ends
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

// Expect opens the ticket of an attempt, whose result may have most bytes; 0: as many
// as there is memory for. What it returns is for one function. take is called with the
// result, once at most, on a goroutine of its own; until it returns the result takes
// memory, and Close waits.
func (e *Endpoint) Expect(name task.Name, most int64, take func(result []byte)) (lambda.Pull, error) {
	t := &ticket{name: name, token: rand.Text(), most: most, take: take, there: make(chan struct{})}
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

// Deliver brings the task of a ticket, which the endpoint may keep until the ticket
// ends. It waits for memory, as long as ctx allows and the ticket lives. A task of more
// than MostTask bytes is a fault of kind Config.
func (e *Endpoint) Deliver(ctx context.Context, name task.Name, message []byte) error {
	n := int64(len(message))
	if n > e.tasks.size {
		return lambda.TooLarge("a task", n, "the data endpoint", e.tasks.size)
	}
	t, err := e.expecting(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.context, cancel)()
	if err := e.tasks.take(ctx, n); err != nil {
		if _, gone := e.expecting(name); gone != nil {
			return gone
		}
		return fmt.Errorf("endpoint: %d bytes of a task find no memory: %w", n, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.lacks(t); err != nil {
		e.tasks.give(n)
		return err
	}
	t.message = message
	close(t.there)
	return nil
}

// expecting returns the ticket of an attempt whose task has not come.
func (e *Endpoint) expecting(name task.Name) (*ticket, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.byName[name]
	return t, e.lacks(t)
}

// lacks tells, as an error, whether a ticket is not one that is open and whose task
// has not come; with the lock.
func (e *Endpoint) lacks(t *ticket) error {
	switch {
	case e.closed:
		return ErrClosed
	case t == nil || e.byName[t.name] != t || t.isThere():
		return ErrNoTicket
	}
	return nil
}

// isThere reports whether the task has been delivered, with the lock.
func (t *ticket) isThere() bool {
	select {
	case <-t.there:
		return true
	default:
		return false
	}
}

// Withdraw ends a ticket, and reports whether its result has come: then it is taken, or
// has been. What comes later is refused. Without a ticket it does nothing.
func (e *Endpoint) Withdraw(name task.Name) (came bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.byName[name]
	if t == nil {
		return false
	}
	e.bury(t, Withdrawn)
	return t.stage == answered
}

// end ends a ticket that may have ended.
func (e *Endpoint) end(t *ticket, why Refusal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byName[t.name] == t {
		e.bury(t, why)
	}
}

// bury ends an open ticket, with the lock.
func (e *Endpoint) bury(t *ticket, why Refusal) {
	t.expiry.Stop()
	delete(e.byName, t.name)
	delete(e.tokens, t.token)
	if t.message != nil {
		e.tasks.give(int64(len(t.message)))
		t.message = nil
	}
	t.why = why
	if t.stage == answered {
		t.why = Reused
	}
	e.ended.add(t.token, t.why)
	t.cancel()
}

// advance takes the ticket of a token from one stage to the next, unless that has been
// done or the ticket is gone: then why says so.
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

// carry takes the task out of its ticket, for the function that fetches it, which
// gives the memory back.
func (e *Endpoint) carry(t *ticket) (message []byte, why Refusal, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byName[t.name] != t {
		return nil, t.why, false
	}
	message, t.message = t.message, nil
	return message, 0, true
}

// accept takes note that the result of a ticket has come, unless the ticket has ended
// while it was under way.
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

// graves remember why the last tickets have ended, so that refusals can say it.
type graves struct {
	why  map[string]Refusal // by token
	ring [4096]string
	next int
}

func (g *graves) add(token string, why Refusal) {
	delete(g.why, g.ring[g.next])
	g.ring[g.next], g.why[token] = token, why
	g.next = (g.next + 1) % len(g.ring)
}

// of is why the ticket of a token has ended; Wrong where it is not known.
func (g *graves) of(token string) Refusal {
	if why, ok := g.why[token]; ok {
		return why
	}
	return Wrong
}
