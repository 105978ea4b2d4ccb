package pool

import (
	"testing"
	"time"
)

// A timeout is Factor times a quantile of the durations of the kind of task, without the effect
// of single stragglers, between Floor and Ceiling. A later attempt has twice the time.
func TestTimeouts(t *testing.T) {
	set := brief().Timeout
	ms := func(list ...int) *durations {
		d := &durations{}
		for _, x := range list {
			d.add(time.Duration(x)*time.Millisecond, set.Window)
		}
		return d
	}
	for _, c := range []struct {
		d    *durations
		n    int
		want time.Duration
	}{
		{ms(), 1, time.Second},
		{ms(20, 20, 20), 1, time.Second},
		{ms(20, 20, 20, 20), 1, 40 * time.Millisecond},
		{ms(20, 20, 20, 20), 2, 80 * time.Millisecond},
		{ms(20, 20, 20, 20), 60, time.Second},
		{ms(10, 20, 30, 40, 50, 60, 70, 80), 1, 120 * time.Millisecond}, // the sixth of eight
		{ms(20, 20, 20, 900, 20, 20, 20, 900), 1, 40 * time.Millisecond},
		{ms(1, 1, 1, 1), 1, 10 * time.Millisecond},
		{ms(900, 900, 900, 900), 1, time.Second},
		{ms(900, 900, 900, 900, 900, 900, 900, 900, 30, 30, 30, 30, 30, 30, 30), 1, 60 * time.Millisecond}, // old ones are forgotten
	} {
		if got := c.d.timeout(set, c.n); got != c.want {
			t.Errorf("%v, attempt %d: %v, want %v", c.d.recent, c.n, got, c.want)
		}
	}
}

// Each kind of task has its own timeout from its durations, including late results. So a slower
// service does not count as dead.
func TestTimeoutsFollowTheService(t *testing.T) {
	v := newService(t.Fatalf, brief())
	round := func(key, kind int, took time.Duration) int {
		v.submitted++
		v.open[key] = true
		v.obey(v.pool.Submit(v.now, key, kind))
		for end := v.now + took; v.now < end; {
			at, _ := v.pool.Next()
			v.pass(min(at, end) - v.now)
		}
		v.answer([2]int{key, 1})
		return v.attempts[key]
	}
	for key := range 8 {
		round(key, 0, 20*time.Millisecond)
	}
	if n := round(100, 1, 900*time.Millisecond); n != 1 {
		t.Errorf("%d attempts at a kind that nothing is known of", n)
	}
	if n := round(101, 0, 300*time.Millisecond); n < 2 {
		t.Error("a straggler is not tried again")
	}
	for key := range 8 {
		round(200+key, 0, 300*time.Millisecond)
	}
	if n := round(300, 0, 300*time.Millisecond); n != 1 {
		t.Errorf("%d attempts, though all take as long", n)
	}
}

// An invocation occupies a place until it ends, also while the pool waits for another attempt of
// its task.
func TestLateOnesHoldTheirPlaces(t *testing.T) {
	s := brief()
	s.Limit = 1
	v := newService(t.Fatalf, s)
	v.submit(0)
	v.pass(time.Second) // late
	if v.pool.Counts().Late != 1 || len(v.running) != 1 {
		t.Fatalf("%+v, %d run", v.pool.Counts(), len(v.running))
	}
	v.pass(9 * time.Second) // its life is over
	if _, runs := v.running[[2]int{0, 2}]; !runs || v.pool.Counts().Lost != 1 {
		t.Errorf("%v run, %+v", v.runs(), v.pool.Counts())
	}
}

// Invocations that never answer do not delay others while there are places.
func TestLateOnesAreNotWaitedFor(t *testing.T) {
	s := brief()
	s.Attempts = 1
	v := newService(t.Fatalf, s)
	for key := range 3 {
		v.submit(key)
		v.pass(time.Second)
	}
	if v.submit(3); v.newest[3] != 1 || len(v.running) != 4 {
		t.Errorf("%v run", v.runs())
	}
}

// A failed task has a reason.
func TestReasonOfTheLastAttempt(t *testing.T) {
	v := newService(t.Fatalf, brief())
	v.submit(0)
	for n := range 3 {
		v.fail([2]int{0, n + 1}, Crashed)
		v.pass(time.Second)
	}
	if v.local[0] != "no result after 3 attempts, the last: crashed: on purpose" {
		t.Errorf("%q", v.local[0])
	}
}

// The time that a function waits for its task is not part of the task's duration.
func TestWaitingAheadIsNoDuration(t *testing.T) {
	v := newService(t.Fatalf, brief())
	for key := range 4 {
		v.obey(v.pool.Expect(v.now, key, 0))
		v.pass(400 * time.Millisecond)
		v.submit(key)
		v.pass(20 * time.Millisecond)
		v.answer([2]int{key, 1})
	}
	if got := v.pool.of(0).timeout(v.s.Timeout, 1); got != 40*time.Millisecond {
		t.Errorf("a timeout of %v", got)
	}
}
