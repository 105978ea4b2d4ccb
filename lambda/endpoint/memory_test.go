package endpoint

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"siafu/internal/fault"
)

// A ticket expires, and its memory is freed.
func TestLife(t *testing.T) {
	b := newBench(t, Options{Life: 20 * time.Millisecond})
	p := b.open(attempt(1), 0, message(attempt(1), 100))
	b.until("the ticket lives", func(s Stats) bool { return s.Open == 0 })
	if status, _ := b.fetch(p.Token); status != 410 || b.Stats().Held > 0 || b.Withdraw(attempt(1)) {
		t.Errorf("status %d, %+v", status, b.Stats())
	}
	b.refusedOnly(map[Refusal]int{Expired: 1})
}

// An attempt has one ticket at a time, whose task is sent once.
func TestTwice(t *testing.T) {
	b := newBench(t, Options{})
	m := message(attempt(1), 100)
	b.open(attempt(1), 0, m)
	if _, err := b.Expect(attempt(1), 0, b.take); err != ErrOpen {
		t.Error(err)
	}
	if err := b.Deliver(t.Context(), attempt(1), m); err != ErrNoTicket || b.Stats().Held != int64(len(m)) {
		t.Errorf("a second task: %v", err)
	}
	b.Withdraw(attempt(1))
	b.open(attempt(1), 0, m)
}

// The reasons of old tickets are eventually discarded.
func TestGraves(t *testing.T) {
	g := reasons{why: map[string]Refusal{}}
	for i := range 3 * len(g.ring) {
		g.add(fmt.Sprint(i), Withdrawn)
	}
	if len(g.why) != len(g.ring) || g.of(fmt.Sprint(3*len(g.ring)-1)) != Withdrawn || g.of("0") != Wrong {
		t.Errorf("%d reasons", len(g.why))
	}
}

// Tasks wait for memory in order. A task that is larger than all memory is refused at once.
func TestMemoryOfTasks(t *testing.T) {
	b := newBench(t, Options{Memory: 2000})
	var tokens []string
	for i := range 4 {
		tokens = append(tokens, b.open(attempt(i), 0, nil).Token)
	}
	deliver := func(ctx context.Context, i int) error {
		return b.Deliver(ctx, attempt(i), message(attempt(i), 400))
	}
	if err := errors.Join(deliver(t.Context(), 0), deliver(t.Context(), 1)); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	end := make(chan error)
	go func() { end <- deliver(gone, 2) }()
	b.until("the third does not wait", func(Stats) bool { b.tasks.mu.Lock(); defer b.tasks.mu.Unlock(); return b.tasks.waiting == 1 })
	cancel()
	if err := <-end; !errors.Is(err, context.Canceled) {
		t.Errorf("a task that was given up: %v", err)
	}
	go func() { end <- deliver(t.Context(), 2) }()
	b.until("the third does not wait again", func(Stats) bool { b.tasks.mu.Lock(); defer b.tasks.mu.Unlock(); return b.tasks.waiting == 1 })
	b.Withdraw(attempt(2))
	if err := <-end; err != ErrNoTicket {
		t.Errorf("a task whose ticket has ended: %v", err)
	}
	go func() { end <- deliver(t.Context(), 3) }()
	b.until("the fourth does not wait", func(Stats) bool { b.tasks.mu.Lock(); defer b.tasks.mu.Unlock(); return b.tasks.waiting == 1 })
	if status, _ := b.fetch(tokens[0]); status != 200 {
		t.Error(status)
	}
	if err := <-end; err != nil {
		t.Error(err)
	}
	if s := b.Stats(); s.Held != 800 || s.MostHeld != 800 {
		t.Errorf("%+v", s)
	}
	if err := b.Deliver(t.Context(), attempt(2), message(attempt(2), 1001)); fault.KindOf(err) != fault.Config ||
		!strings.Contains(err.Error(), "--intervals") {
		t.Errorf("a large task: %v", err)
	}
}

// Unread results occupy at most the memory; further ones are refused after a wait.
func TestMemoryOfResults(t *testing.T) {
	t.Parallel() // most of it is waiting
	b := newBench(t, Options{Memory: 2000, Grace: grace})
	statuses := map[int]int{}
	for i := range 3 {
		m := message(attempt(i), 400)
		p := b.open(attempt(i), 0, m)
		b.fetch(p.Token)
		statuses[b.answer(p.Token, m)]++
	}
	if s := b.Stats(); statuses[204] != 2 || statuses[503] != 1 || s.Answered != 2 || s.Held != 800 || b.answers.most != 800 {
		t.Errorf("%v, %+v", statuses, s)
	}
	b.refusedOnly(map[Refusal]int{Full: 1})
	b.result()
	b.result()
	b.until("results are held that were taken", func(s Stats) bool { return s.Held == 0 })
	if !b.Withdraw(attempt(0)) || b.Withdraw(attempt(2)) {
		t.Error("a refused result has come, or another one has not")
	}
}
