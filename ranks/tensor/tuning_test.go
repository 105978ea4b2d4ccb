package tensor

import (
	"testing"

	"siafu/kernels/task"
	"siafu/lambda/pool"
)

// nowhere is a transport without sends.
type nowhere chan task.Answer

func (nowhere) Send([]byte) error             { panic("a task is sent") }
func (n nowhere) Answers() <-chan task.Answer { return n }
func (nowhere) Close() error                  { return nil }

// The number of invocations follows the queue while tasks run, and its history is reported.
func TestNumberFollowsTheQueue(t *testing.T) {
	r := NewRemote(nowhere(nil), RequestOptions{}, pool.Defaults(), func(string) {})
	defer r.Close()
	r.Tune(pool.NewTuner(40))
	look := func(working bool, sizes ...int) Tuning {
		for _, n := range sizes {
			r.follow(func() (int, bool) { return n, working })
		}
		return *r.Tuning()
	}
	if got := look(true); got.First != 40 || got.Last != 40 || got.Changes != 0 {
		t.Errorf("it begins with %+v", got)
	}
	if got := look(false, 10, 20, 30, 40, 50); got.Changes != 0 || len(got.Checks) != 0 {
		t.Errorf("between passes: %+v", got)
	}
	fewer := look(true, 10, 11, 12, 13)
	if fewer.Last >= 40 || fewer.Least != fewer.Last || fewer.Most != 40 || fewer.Changes != 1 || len(fewer.Checks) != 4 {
		t.Errorf("a queue that grows: %+v", fewer)
	}
	if c := fewer.Checks[3]; c.Queue != 13 || c.Number != fewer.Last || fewer.Checks[2].Number != 40 || c.At.Before(fewer.Checks[0].At) {
		t.Errorf("the checks are %+v", fewer.Checks)
	}
	if got := look(true, 0, 0, 0, 0); got.Last <= fewer.Last || got.Least != fewer.Last || got.Changes != 2 {
		t.Errorf("a queue that stays empty: %+v", got)
	}
}

// Without a tuner the number is fixed, and the queue is not sampled.
func TestFixedNumber(t *testing.T) {
	s := pool.Defaults()
	s.Limit = 7
	r := NewRemote(nowhere(nil), RequestOptions{}, s, func(string) {})
	r.Follow(func() (int, bool) { panic("the queue is looked at") })
	r.Close()
	if got := r.Tuning(); got.First != 7 || got.Last != 7 || got.Least != 7 || got.Most != 7 || len(got.Checks) != 0 {
		t.Errorf("%+v", got)
	}
}

// Only the newest checks are stored, in their order.
func TestChecksAreBounded(t *testing.T) {
	r := NewRemote(nowhere(nil), RequestOptions{}, pool.Defaults(), func(string) {})
	defer r.Close()
	r.Tune(pool.NewTuner(1))
	for n := range mostChecks + 3 {
		r.check(n)
	}
	if c := r.Tuning().Checks; len(c) != mostChecks || c[0].Queue != 3 || c[mostChecks-1].Queue != mostChecks+2 {
		t.Errorf("%d checks, from %d to %d", len(c), c[0].Queue, c[len(c)-1].Queue)
	}
}
