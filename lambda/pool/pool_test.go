package pool

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// brief returns settings with short times, without a breaker.
func brief() Settings {
	return Settings{
		Limit: 4, Attempts: 3, InvocationLimit: 10 * time.Second,
		Timeout: Timeout{Floor: 10 * time.Millisecond, Ceiling: time.Second, Quantile: 0.75, Factor: 2, Window: 8, Few: 4},
		Backoff: Pause{20 * time.Millisecond, time.Second}, Seed: 1,
	}
}

func withBreaker(s Settings) Settings {
	s.Breaker = Breaker{Failures: 3, Rest: Pause{time.Second, 8 * time.Second}}
	return s
}

// service executes the orders of a Pool. It has the running invocations and the state of each
// task.
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

// obey executes orders, and checks the invariants after each event.
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

// pass advances the time, and ends expired invocations.
func (v *service) pass(d time.Duration) []Order[int] {
	v.now += d
	for k, began := range v.running {
		if v.now >= began+v.s.InvocationLimit {
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

// answer delivers the result of an invocation, which may have ended before.
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

// runs returns the invocations that run, in order.
func (v *service) runs() [][2]int {
	var list [][2]int
	for k := range v.running {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return list
}

// drain advances the time without answers until nothing is due, and returns the number of
// events.
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

// For any events in any order: the limits of concurrency and of attempts per task hold,
// attempt numbers increase, and no task ends twice. The counts of invocations and tasks are
// consistent at any time. Without further responses all tasks end.
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

// The same events give the same orders. Other seeds give other pauses.
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

// A lower limit delays the next invocation until enough have ended.
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

// A task does not accept results of invocations of an earlier task with the same name.
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
