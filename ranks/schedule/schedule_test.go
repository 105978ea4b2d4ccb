package schedule_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/testkit/hosttest"
	"siafu/ranks/schedule"
)

// flow walks through a graph of tasks that take note of what has run before
// them. Events come when Poll has been asked often enough, or at once when the
// pool has nothing else to do.
type flow struct {
	*schedule.Walk
	mu      sync.Mutex
	ran     map[int]int // by Interval, which numbers the tasks
	polls   int
	every   int // polls an event takes
	running atomic.Int32
	fail    int // the task that fails, 0 for none
	waits   int
	due     bool // the event has come
	before  func(t schedule.Task)
}

var errTask = errors.New("the task has failed")

func (f *flow) Run(_ int, t schedule.Task) (bool, error) {
	f.running.Add(1)
	defer f.running.Add(-1)
	if f.before != nil {
		f.before(t)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ran[t.Interval]++
	if t.Interval == f.fail {
		return true, errTask
	}
	return true, nil
}

func (f *flow) Done(t schedule.Task) error {
	f.Walk.Done(t)
	return nil
}

func (f *flow) Listens() bool { return true }

func (f *flow) Idle(int, schedule.Task, time.Time, time.Time) {}

func (f *flow) Poll() (bool, error) {
	t, ok := f.Awaited()
	if f.polls++; !ok || f.polls%f.every != 0 && !f.due {
		return false, nil
	}
	f.due = false
	return true, f.come(t)
}

func (f *flow) Wait() error {
	f.waits++
	_, ok := f.Awaited()
	if !ok || f.running.Load() > 0 {
		return errors.New("waits although there is work")
	}
	f.due = true
	return nil
}

func (f *flow) come(t schedule.Task) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ran[t.Interval]++
	f.Walk.Done(t)
	return nil
}

// Every task runs once in each walk, after all that it waits for, however many
// workers there are and whenever events come.
func TestDependencies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, needs := &schedule.Graph{}, [][]int{nil}
		ids := []schedule.ID{}
		for n := range rapid.IntRange(1, 60).Draw(t, "places") {
			var after []schedule.ID
			var numbers []int
			for range min(n, rapid.IntRange(0, 4).Draw(t, "needs")) {
				k := rapid.IntRange(0, n-1).Draw(t, "need")
				after, numbers = append(after, ids[k]), append(numbers, k+1)
			}
			task := schedule.Task{Interval: n + 1}
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				ids = append(ids, g.Event(task, after...))
			default:
				ids = append(ids, g.Task(task, after...))
			}
			needs = append(needs, numbers)
		}
		pool := schedule.NewPool(rapid.IntRange(1, 4).Draw(t, "workers"), nil)
		defer pool.Close()
		f := &flow{Walk: schedule.NewWalk(g), every: rapid.IntRange(1, 50).Draw(t, "every")}
		for epoch := range 3 {
			f.ran = map[int]int{}
			f.before = func(task schedule.Task) {
				f.mu.Lock()
				defer f.mu.Unlock()
				for _, k := range needs[task.Interval] {
					if f.ran[k] == 0 {
						t.Errorf("task %d runs before %d", task.Interval, k)
					}
				}
				if task.Epoch != epoch {
					t.Errorf("a task of epoch %d in epoch %d", task.Epoch, epoch)
				}
			}
			f.Start(epoch)
			if err := pool.Run(f); err != nil {
				t.Fatal(err)
			}
			for n := 1; n < len(needs); n++ {
				if f.ran[n] != 1 {
					t.Errorf("place %d is done %d times", n, f.ran[n])
				}
			}
		}
	})
}

// A joint holds back what is behind it until all before it is done.
func TestJoin(t *testing.T) {
	g := &schedule.Graph{}
	var first []schedule.ID
	for i := range 5 {
		first = append(first, g.Task(schedule.Task{Interval: i}))
	}
	joint := g.Join(first...)
	for i := range 5 {
		g.Task(schedule.Task{Interval: 5 + i}, joint)
	}
	if got, want := order(g), "0 1 2 3 4 5 6 7 8 9"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A worker continues with the task that its last task has made ready, because that interval is in
// its cache.
func TestNewestFirst(t *testing.T) {
	g := &schedule.Graph{}
	for i := range 3 {
		id := g.Task(schedule.Task{Interval: 10 * i})
		id = g.Task(schedule.Task{Interval: 10*i + 1}, id)
		g.Task(schedule.Task{Interval: 10*i + 2}, id)
	}
	if got, want := order(g), "0 1 2 10 11 12 20 21 22"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// order returns the tasks of a walk as one worker runs them.
func order(g *schedule.Graph) string {
	w := schedule.NewWalk(g)
	w.Start(1)
	var list []string
	for t, ok := w.Next(); ok; t, ok = w.Next() {
		list = append(list, fmt.Sprint(t.Interval))
		w.Done(t)
	}
	return strings.Join(list, " ")
}

// A task that fails ends the run with its error, on any number of workers.
func TestFailure(t *testing.T) {
	for workers := 1; workers <= 4; workers++ {
		g := &schedule.Graph{}
		last := g.Event(schedule.Task{Interval: 99})
		for i := range 20 {
			last = g.Task(schedule.Task{Interval: i + 1}, last)
		}
		pool := schedule.NewPool(workers, nil)
		f := &flow{Walk: schedule.NewWalk(g), ran: map[int]int{}, every: 3, fail: 10}
		f.Start(1)
		if err := pool.Run(f); !errors.Is(err, errTask) {
			t.Errorf("%d workers: %v", workers, err)
		}
		if f.ran[11] != 0 {
			t.Errorf("%d workers: the task behind it has run", workers)
		}
		pool.Close()
	}
}

// A task that the system gives no memory fails as any other, whichever worker
// runs it.
func TestTaskWithoutMemory(t *testing.T) {
	for workers := 1; workers <= 3; workers++ {
		g, arena := &schedule.Graph{}, mapped.NewArena()
		for i := range 20 {
			g.Task(schedule.Task{Interval: i + 1})
		}
		pool := schedule.NewPool(workers, nil)
		f := &flow{Walk: schedule.NewWalk(g), ran: map[int]int{}, every: 3, before: func(t schedule.Task) {
			mapped.Make[float64](arena, (t.Interval+1)<<55)
		}}
		f.Start(1)
		if err := pool.Run(f); fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "cannot allocate an array of") {
			t.Errorf("%d workers: %v", workers, err)
		}
		pool.Close()
	}
}

// Work is shared: two tasks that wait for each other's beginning end only if
// two workers run them.
func TestWorkersRunSideBySide(t *testing.T) {
	g := &schedule.Graph{}
	for i := range 2 {
		g.Task(schedule.Task{Interval: i + 1})
	}
	var meet sync.WaitGroup
	meet.Add(2)
	f := &flow{Walk: schedule.NewWalk(g), ran: map[int]int{}, every: 1, before: func(schedule.Task) {
		meet.Done()
		meet.Wait()
	}}
	pool := schedule.NewPool(2, nil)
	defer pool.Close()
	f.Start(1)
	done := make(chan error, 1)
	go func() { done <- pool.Run(f) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(hosttest.Patience):
		t.Fatal("one worker runs all")
	}
}

// A run allocates nothing once a walk has been made.
func TestNoAllocation(t *testing.T) {
	g := &schedule.Graph{}
	var ids []schedule.ID
	for i := range 50 {
		ids = append(ids, g.Task(schedule.Task{Interval: i}, ids[max(0, i-3):]...))
	}
	pool := schedule.NewPool(2, nil)
	defer pool.Close()
	f := &still{Walk: schedule.NewWalk(g)}
	run := func() {
		f.Start(1)
		if err := pool.Run(f); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

// still is a flow whose tasks do nothing.
type still struct{ *schedule.Walk }

func (still) Run(int, schedule.Task) (bool, error) { return true, nil }
func (still) Listens() bool                        { return false }

func (still) Idle(int, schedule.Task, time.Time, time.Time) {}

func (still) Poll() (bool, error) { return false, nil }
func (still) Wait() error         { return errors.New("nothing is awaited") }
func (s still) Done(t schedule.Task) error {
	s.Walk.Done(t)
	return nil
}

// The kinds are those of Dorylus's figure 2, without AE, which is a part of a
// gather with attention.
func TestKinds(t *testing.T) {
	var kinds []string
	for s := schedule.Emit; s <= schedule.Update; s++ {
		if !slices.Contains(kinds, s.Kind()) {
			kinds = append(kinds, s.Kind())
		}
	}
	if got, want := strings.Join(kinds, " "), "AV SC GA loss ∇AV ∇GA ∇SC WU"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func BenchmarkPool(b *testing.B) {
	g := &schedule.Graph{}
	const tasks = 1000
	for i := range tasks {
		g.Task(schedule.Task{Interval: i})
	}
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			pool := schedule.NewPool(workers, nil)
			defer pool.Close()
			f := &still{Walk: schedule.NewWalk(g)}
			for b.Loop() {
				f.Start(1)
				if err := pool.Run(f); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/tasks, "ns/task")
		})
	}
}

// The queue has the tasks that may run but do not. It is empty between two runs.
func TestQueue(t *testing.T) {
	g := &schedule.Graph{}
	first := g.Task(schedule.Task{Interval: 1})
	for n := range 5 {
		g.Task(schedule.Task{Interval: n + 2}, first)
	}
	p := schedule.NewPool(1, nil)
	defer p.Close()
	var sizes []int
	f := &flow{Walk: schedule.NewWalk(g), ran: map[int]int{}, every: 1}
	f.before = func(schedule.Task) {
		n, runs := p.Queue()
		if !runs {
			t.Error("nothing runs")
		}
		sizes = append(sizes, n)
	}
	for range 2 {
		if n, runs := p.Queue(); runs || n != 0 {
			t.Errorf("%d tasks wait of no flow", n)
		}
		sizes = nil
		f.Start(1)
		if err := p.Run(f); err != nil {
			t.Fatal(err)
		}
		if want := []int{0, 4, 3, 2, 1, 0}; !slices.Equal(sizes, want) {
			t.Errorf("%v tasks wait, want %v", sizes, want)
		}
	}
}
