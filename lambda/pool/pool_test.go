package pool

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// brief are settings whose times are short, without a breaker.
func brief() Settings {
	return Settings{
		Limit: 4, Attempts: 3, Life: 10 * time.Second,
		Timeout: Timeout{Floor: 10 * time.Millisecond, Ceiling: time.Second, Quantile: 0.75, Factor: 2, Window: 8, Few: 4},
		Backoff: Pause{20 * time.Millisecond, time.Second}, Seed: 1,
	}
}

func withBreaker(s Settings) Settings {
	s.Breaker = Breaker{Failures: 3, Rest: Pause{time.Second, 8 * time.Second}}
	return s
}

// service is what the orders of a Pool are given to: it knows which invocations run,
// and what has become of each task.
type service struct {
	fatal     func(string, ...any)
	pool      *Pool[int]
	s         Settings
	now       time.Duration
	running   map[[2]int]time.Duration // by task and attempt: when it began
	attempts  map[int]int              // of the task since it was submitted
	newest    map[int]int              // attempt of a task
	open      map[int]bool             // submitted, and not ended
	used      map[int]int
	local     map[int]string
	said      []string
	submitted int
}

func newService(fatal func(string, ...any), s Settings) *service {
	return &service{
		fatal: fatal, pool: New[int](s), s: s, running: map[[2]int]time.Duration{}, attempts: map[int]int{}, newest: map[int]int{},
		open: map[int]bool{}, used: map[int]int{}, local: map[int]string{},
	}
}

// obey carries orders out, and checks what must hold behind each event.
func (v *service) obey(orders []Order[int]) []Order[int] {
	for _, o := range orders {
		switch o.Do {
		case Invoke:
			v.attempts[o.Task]++
			if v.attempts[o.Task] > v.s.Attempts || o.Attempt <= v.newest[o.Task] {
				v.fatal("attempt %d at task %d, after %d, of %d", o.Attempt, o.Task, v.newest[o.Task], v.s.Attempts)
			}
			v.newest[o.Task] = o.Attempt
			v.running[[2]int{o.Task, o.Attempt}] = v.now
		case Local:
			if !v.open[o.Task] || o.Reason == "" {
				v.fatal("task %d is to be done here, %q, and is not open", o.Task, o.Reason)
			}
			delete(v.open, o.Task)
			v.local[o.Task] = o.Reason
		case Say:
			v.said = append(v.said, o.Reason)
		}
	}
	v.check()
	return orders
}

func (v *service) check() {
	c := v.pool.Counts()
	switch {
	case len(v.running) > v.s.Limit || len(v.running) != v.pool.Running():
		v.fatal("%d run, the pool says %d of %d", len(v.running), v.pool.Running(), v.s.Limit)
	case c.Invoked != c.Used+c.Dropped+c.Failed+c.Throttled+c.Lost+v.pool.Running():
		v.fatal("invocations do not add up: %+v, %d run", c, v.pool.Running())
	case c.Submitted != v.submitted || c.Submitted != c.Used+c.Local+len(v.open) || v.pool.Open() != len(v.open):
		v.fatal("tasks do not add up: %+v, %d submitted, %d open", c, v.submitted, len(v.open))
	}
}

// pass lets time pass, and the service end what has lived for too long.
func (v *service) pass(d time.Duration) []Order[int] {
	v.now += d
	for k, began := range v.running {
		if v.now >= began+v.s.Life {
			delete(v.running, k)
		}
	}
	return v.obey(v.pool.Tick(v.now))
}

func (v *service) submit(key int) []Order[int] {
	v.submitted++
	v.open[key] = true
	return v.obey(v.pool.Submit(v.now, key, 0))
}

// answer brings the result of an invocation, which may have ended before.
func (v *service) answer(k [2]int) bool {
	delete(v.running, k)
	wanted := v.pool.Wants(k[0], k[1])
	first, orders := v.pool.Result(v.now, k[0], k[1])
	if first {
		if !v.open[k[0]] {
			v.fatal("a result of task %d counts, which is not open", k[0])
		}
		delete(v.open, k[0])
		v.used[k[0]]++
	}
	if first != wanted {
		v.fatal("a result of task %d was wanted: %v, and counts: %v", k[0], wanted, first)
	}
	v.obey(orders)
	return first
}

func (v *service) fail(k [2]int, why Failure) []Order[int] {
	delete(v.running, k)
	return v.obey(v.pool.Failed(v.now, k[0], k[1], why, "on purpose"))
}

// runs are the invocations that run, in order.
func (v *service) runs() [][2]int {
	var list [][2]int
	for k := range v.running {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return list
}

// drain lets time pass until nothing is due any more, nobody answering, and gives how
// often something was.
func (v *service) drain() int {
	for n := 0; ; n++ {
		at, ok := v.pool.Next()
		if !ok {
			return n
		}
		if n > 100000 {
			v.fatal("something is always due: at %v, now %v", at, v.now)
		}
		v.pass(max(at-v.now, 0))
	}
}

func drawSettings(t *rapid.T) Settings {
	s := brief()
	s.Limit, s.Attempts = rapid.IntRange(1, 6).Draw(t, "limit"), rapid.IntRange(1, 5).Draw(t, "attempts")
	s.Seed = rapid.Uint64().Draw(t, "seed")
	if rapid.Bool().Draw(t, "breaker") {
		s = withBreaker(s)
	}
	return s
}

// Whatever happens in whatever order: no more run than may, no task is tried more
// often than it may be, numbers of attempts grow, invocations and tasks add up at each
// moment, no task ends twice, and if nobody answers any more all have an end.
func TestPoolUnderAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := newService(t.Fatalf, drawSettings(t))
		next, expected := 0, []int{}
		var ended [][2]int
		pick := func(list [][2]int) [2]int { return list[rapid.IntRange(0, len(list)-1).Draw(t, "which")] }
		for range rapid.IntRange(1, 120).Draw(t, "events") {
			runs := v.runs()
			switch what := rapid.IntRange(0, 9).Draw(t, "event"); {
			case what <= 2:
				v.submit(next)
				next++
			case what == 3:
				v.obey(v.pool.Expect(v.now, next, 0))
				expected, next = append(expected, next), next+1
			case what == 4 && len(expected) > 0:
				v.submit(expected[0])
				expected = expected[1:]
			case what <= 6 && len(runs) > 0:
				k := pick(runs)
				ended = append(ended, k)
				v.answer(k)
			case what == 7 && len(runs) > 0:
				k := pick(runs)
				ended = append(ended, k)
				v.fail(k, Failure(rapid.IntRange(0, 2).Draw(t, "why")))
			case what == 8 && len(ended) > 0:
				if v.answer(pick(ended)) {
					t.Fatal("an invocation that had ended counts")
				}
			default:
				v.pass(time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond)
			}
		}
		for _, key := range expected {
			v.submit(key)
		}
		v.drain()
		if len(v.open) > 0 || len(v.running) > 0 || len(v.pool.live) > 0 || len(v.pool.byKey) > 0 {
			t.Fatalf("%d tasks are open, %d invocations run, %d are kept", len(v.open), len(v.running), len(v.pool.live))
		}
	})
}

// The same events give the same orders, and other seeds other pauses.
func TestPoolIsReproducible(t *testing.T) {
	trace := func(seed uint64) string {
		s := withBreaker(brief())
		s.Seed = seed
		v := newService(t.Fatalf, s)
		text := ""
		for key := range 20 {
			v.submit(key)
		}
		for range 40 {
			for i, k := range v.runs() {
				text += fmt.Sprintln(v.now, v.fail(k, Failure(i%3)))
			}
			at, _ := v.pool.Next()
			text += fmt.Sprintln(v.pass(max(at-v.now, 0)))
		}
		return text
	}
	if first := trace(1); first != trace(1) {
		t.Error("the same events, other orders")
	}
	if trace(1) == trace(2) {
		t.Error("there is no jitter")
	}
}

// A function that never starts is not invoked again and again: what is invoked for it
// stays below twice the places, one a failure that counts, and one a rest of the
// breaker, however many tasks come. Every start that fails is one that is charged.
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

// Pauses double from half of First on, are drawn from their upper half, and end at Most.
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

// While a start fails nothing is invoked before the pause is over, for any task.
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

// A crash holds up its own task alone.
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

// The breaker opens after its number of failures in a row, and says why; all is done
// here; after a rest one task is a probe while others are done here; one that fails
// makes a longer rest; one that succeeds closes the breaker.
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
	if last := v.said[len(v.said)-1]; last != "the function answers again" {
		t.Errorf("said %q", v.said)
	}
}

// A probe whose task was ended by an older attempt closes or keeps the breaker too.
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
			v.pass(s.Life)
			v.pass(time.Second)
		}
		v.submit(2)
		if _, runs := v.running[[2]int{2, 1}]; !runs {
			t.Errorf("answers %v: no invocation any more, said %q", answers, v.said)
		}
	}
}

// A timeout is Factor times the quantile of what tasks of the kind took, whatever
// single stragglers took, between Floor and Ceiling; a later attempt has twice the time.
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

// Kinds of tasks have timeouts of their own, which what they took decides, also where
// it came late: so a service that has become slower is not taken for a dead one.
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

// A place is held by an invocation until it ends, also while another attempt at its
// task is waited for.
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

// What will never answer does not keep those that could out, while there are places.
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

// A task that nobody has done says why.
func TestReasonOfTheLastAttempt(t *testing.T) {
	v := newService(t.Fatalf, brief())
	v.submit(0)
	for n := range 3 {
		v.fail([2]int{0, n + 1}, Crashed)
		v.pass(time.Second)
	}
	if v.local[0] != "no result of 3 attempts, the last: crashed: on purpose" {
		t.Errorf("%q", v.local[0])
	}
}

// A lower limit holds back the next invocation until enough have ended.
func TestSetLimit(t *testing.T) {
	v := newService(t.Fatalf, brief())
	for key := range 6 {
		v.submit(key)
	}
	v.obey(v.pool.SetLimit(v.now, 2))
	v.answer([2]int{0, 1})
	v.answer([2]int{1, 1})
	if len(v.running) != 2 || v.newest[4] != 0 {
		t.Fatalf("%v run", v.runs())
	}
	v.answer([2]int{2, 1})
	if v.newest[4] != 1 {
		t.Error("a free place is not taken")
	}
	v.s.Limit = 9
	if v.obey(v.pool.SetLimit(v.now, 9)); v.newest[5] != 1 {
		t.Error("a new place is not taken")
	}
}

// A task of the same name as one whose invocations still run does not take their
// results for its own.
func TestSameNameAgain(t *testing.T) {
	v := newService(t.Fatalf, brief())
	v.submit(0)
	v.pass(time.Second)
	if !v.answer([2]int{0, 2}) {
		t.Fatal("the second attempt's result is not used")
	}
	v.attempts[0] = 0
	v.submit(0)
	if v.answer([2]int{0, 1}) {
		t.Error("a result of the task before is used")
	}
	if !v.answer([2]int{0, 3}) {
		t.Error("the result of the third attempt is not used")
	}
	if c := v.pool.Counts(); c.Used != 2 || c.Dropped != 1 || c.Retried != 1 || c.Strays != 0 {
		t.Errorf("%+v", c)
	}
	v.answer([2]int{0, 3})
	if c := v.pool.Counts(); c.Used != 2 || c.Dropped != 1 || c.Strays != 1 {
		t.Errorf("a duplicate is counted: %+v", c)
	}
}

// Failures of invocations that were under way together count once; half as many may
// run afterwards, and one more for each result.
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

// A result of an invocation that began before does not end a pause.
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

// How long a function waited for its task is not how long the task takes.
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
