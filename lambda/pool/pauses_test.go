package pool

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A function that never starts is not invoked repeatedly. The number of invocations stays below
// twice the places, plus one per counted failure and one per rest of the breaker, for any number
// of tasks. Each failed start is charged.
func TestFailedStartsAreNoBill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := withBreaker(brief())
		s.Limit, s.Attempts = rapid.IntRange(1, 64).Draw(t, "limit"), 50
		s.Seed = rapid.Uint64().Draw(t, "seed")
		v := newService(t.Fatalf, s)
		const whole = 4 * time.Minute
		for key := 0; v.now < whole; key++ {
			v.submit(key)
			for _, k := range v.runs() {
				v.fail(k, NotStarted)
			}
			v.pass(time.Duration(rapid.IntRange(1, 400).Draw(t, "ms")) * time.Millisecond)
		}
		probes := int(whole/(s.Breaker.Rest.Most/2)) + 4 // it doubles from 1 s to 8 s
		if got, most := v.pool.Counts().Invoked, 2*s.Limit+s.Breaker.Failures+probes; got > most {
			t.Fatalf("%d invocations of a function that never starts, at most %d were due", got, most)
		}
		if v.pool.Counts().Opened == 0 || len(v.local) == 0 {
			t.Fatal("the breaker never opened")
		}
	})
}

// Pauses double from half of First, are drawn from their upper half, and are at most Most.
func TestPauses(t *testing.T) {
	p := New[int](brief())
	for n := 1; n <= 80; n++ {
		whole := p.s.Backoff.Most
		if n < 7 { // 20 ms × 2⁵ < 1 s
			whole = min(whole, p.s.Backoff.First<<(n-1))
		}
		for range 50 {
			if d := p.s.Backoff.draw(n, p.rng); d < whole/2 || d > whole {
				t.Fatalf("pause %d is %v, not of %v", n, d, whole)
			}
		}
	}
}

// After a failed start nothing is invoked until the pause is over, for any task.
func TestThrottlingPausesAll(t *testing.T) {
	for _, why := range []Failure{Throttled, NotStarted} {
		v := newService(t.Fatalf, brief())
		v.submit(0)
		v.fail([2]int{0, 1}, why)
		v.submit(1)
		at, ok := v.pool.Next()
		if !ok || at < 10*time.Millisecond || at > 20*time.Millisecond || len(v.running) > 0 {
			t.Fatalf("%v: next at %v, %d run", why, at, len(v.running))
		}
		v.pass(at - v.now - 1)
		if len(v.running) > 0 {
			t.Errorf("%v: invoked within the pause", why)
		}
		v.pass(1)
		if got := v.runs(); len(got) == 0 || got[0] != [2]int{0, 2} {
			t.Errorf("%v: %v run", why, got)
		}
	}
}

// A crash delays only its own task.
func TestCrashPausesItsTask(t *testing.T) {
	v := newService(t.Fatalf, brief())
	v.submit(0)
	v.fail([2]int{0, 1}, Crashed)
	v.submit(1)
	if got := v.runs(); len(got) != 1 || got[0] != [2]int{1, 1} {
		t.Errorf("%v run", got)
	}
	v.pass(20 * time.Millisecond)
	if _, again := v.running[[2]int{0, 2}]; !again {
		t.Error("the task is not tried again")
	}
}

// The breaker opens after its number of consecutive failures, and gives the reason. All tasks
// are then computed here. After a rest one task is a probe while others are computed here. A
// failed probe makes the rest longer, and a successful probe closes the breaker.
func TestBreaker(t *testing.T) {
	v := newService(t.Fatalf, withBreaker(brief()))
	for key := range 3 {
		v.submit(key)
		v.fail([2]int{key, 1}, NotStarted)
		v.pass(time.Second)
		if key < 2 && len(v.local) > 0 {
			t.Fatalf("open after %d failures", key+1)
		}
		for _, k := range v.runs() {
			v.answer(k) // and resets what has been counted
		}
	}
	if len(v.said) > 0 {
		t.Fatal("open, though functions answered in between")
	}
	v.submit(10)
	for n := range 3 {
		if len(v.running) != 1 {
			t.Fatalf("failure %d: %d run", n, len(v.running))
		}
		v.fail(v.runs()[0], NotStarted)
		if n < 2 {
			at, _ := v.pool.Next()
			v.pass(at - v.now)
		}
	}
	if len(v.local) != 1 || len(v.said) != 1 || v.said[0] == "" {
		t.Fatalf("local %v, said %q", v.local, v.said)
	}
	if v.submit(11); v.local[11] != "3 failures in a row, the last: not started: on purpose" {
		t.Errorf("reason %q", v.local[11])
	}
	v.pass(time.Second)
	v.submit(12)
	if v.submit(13); len(v.running) != 1 || v.local[13] == "" {
		t.Fatalf("probe: %d run, local %v", len(v.running), v.local)
	}
	v.fail(v.runs()[0], NotStarted)
	v.pass(999 * time.Millisecond) // of a rest of 1 to 2 s
	if v.submit(14); v.local[14] == "" {
		t.Error("the rest after a probe is no longer than the one before")
	}
	v.pass(time.Second + time.Millisecond)
	v.submit(15)
	if !v.answer([2]int{15, 1}) {
		t.Fatal("the probe's result is not used")
	}
	v.submit(16)
	if _, runs := v.running[[2]int{16, 1}]; !runs {
		t.Error("the breaker has not closed")
	}
	if last := v.said[len(v.said)-1]; last != "the function responds again" {
		t.Errorf("said %q", v.said)
	}
}

// A probe whose task was ended by an older attempt also decides about the breaker.
func TestProbeBehindItsTask(t *testing.T) {
	for _, answers := range []bool{true, false} {
		s := withBreaker(brief())
		s.Breaker.Rest, s.Breaker.Failures, s.Attempts = Pause{time.Millisecond, time.Millisecond}, 1, 3
		v := newService(t.Fatalf, s)
		v.submit(0)
		v.submit(1)
		v.fail([2]int{1, 1}, NotStarted) // opens it: task 1 is done here, attempt 1 at task 0 goes on
		v.pass(time.Second)              // attempt 1 is late, attempt 2 the probe
		if _, runs := v.running[[2]int{0, 2}]; !runs {
			t.Fatalf("%v run", v.runs())
		}
		v.answer([2]int{0, 1})
		if answers {
			v.answer([2]int{0, 2})
		} else {
			v.pass(s.InvocationLimit)
			v.pass(time.Second)
		}
		v.submit(2)
		if _, runs := v.running[[2]int{2, 1}]; !runs {
			t.Errorf("answers %v: no invocation any more, said %q", answers, v.said)
		}
	}
}

// Failures of concurrent invocations count once. Half as many invocations may run afterwards,
// and one more for each result.
func TestFailuresTogetherCountOnce(t *testing.T) {
	v := newService(t.Fatalf, withBreaker(brief()))
	for key := range 12 {
		v.submit(key)
	}
	for _, k := range v.runs() {
		v.fail(k, NotStarted)
	}
	if len(v.said) > 0 || len(v.local) > 0 {
		t.Fatalf("one cause opens the breaker: %q", v.said)
	}
	v.pass(20 * time.Millisecond)
	if len(v.running) != 2 {
		t.Fatalf("%d run after a failure with 4 places", len(v.running))
	}
	v.answer(v.runs()[0])
	if len(v.running) != 3 {
		t.Errorf("%d run after a result", len(v.running))
	}
}

// The result of an earlier invocation does not end a pause.
func TestResultsEndNoPause(t *testing.T) {
	v := newService(t.Fatalf, brief())
	v.submit(0)
	v.submit(1)
	v.fail([2]int{0, 1}, Throttled)
	v.answer([2]int{1, 1})
	if len(v.running) != 0 {
		t.Error("invoked within the pause")
	}
	if v.pass(20 * time.Millisecond); len(v.running) != 1 {
		t.Error("not invoked after it")
	}
}
