package pool

import (
	"testing"
	"time"
)

// "Lambda threads are launched by the controller for a task t at the time t's previous
// task starts executing. For example, Dorylus launches n Lambda threads, preparing them
// for AV when n GA tasks start to run." (§6) So a function is up before its task, its
// time to answer begins with the task, and the launch that the task follows is its own.
func TestLaunchedWhenThePreviousTaskStarts(t *testing.T) {
	const n = 3
	v := newService(t.Fatalf, brief())
	for key := range n {
		v.obey(v.pool.Expect(v.now, key, 0))
	}
	if len(v.running) != n {
		t.Fatalf("%d functions are up for %d tasks to come", len(v.running), n)
	}
	v.pass(5 * time.Second) // longer than any timeout: gathers take their time
	if v.pool.Counts().Late != 0 {
		t.Error("a function is late whose task is not there")
	}
	for key := range n {
		v.submit(key)
	}
	if v.pool.Counts().Invoked != n {
		t.Errorf("%d invocations for %d tasks", v.pool.Counts().Invoked, n)
	}
	v.pass(time.Second - 1)
	if c := v.pool.Counts(); c.Late != 0 {
		t.Errorf("%d are late before their time is over", c.Late)
	}
	for key := range n {
		if !v.answer([2]int{key, 1}) {
			t.Error("the function that was up is not the one whose result counts")
		}
	}
}

// A function that was launched for a task and did not come up is not launched again
// before the task is there: nobody knows how long that will be, and it is charged.
func TestLaunchedAheadOnce(t *testing.T) {
	v := newService(t.Fatalf, brief())
	v.obey(v.pool.Expect(v.now, 0, 0))
	v.fail([2]int{0, 1}, NotStarted)
	v.pass(time.Minute)
	if len(v.running) != 0 || v.pool.Counts().Invoked != 1 {
		t.Errorf("%v run", v.runs())
	}
	if v.submit(0); len(v.running) != 1 {
		t.Error("nothing does the task")
	}
}

// "Our controller also times each Lambda execution and relaunches it after timeout."
// (§6) The timeout is of its own execution; the one before may still bring the result,
// and of two results one counts.
func TestTimedAndRelaunched(t *testing.T) {
	for winner := 1; winner <= 2; winner++ {
		v := newService(t.Fatalf, brief())
		v.submit(0)
		v.pass(time.Second - 1)
		if len(v.running) != 1 {
			t.Fatal("relaunched before its timeout")
		}
		v.pass(1)
		if len(v.running) != 2 {
			t.Fatal("not relaunched after its timeout")
		}
		if !v.answer([2]int{0, winner}) || v.answer([2]int{0, 3 - winner}) {
			t.Errorf("of two results one counts, the first, here of attempt %d", winner)
		}
		c := v.pool.Counts()
		if c.Used != 1 || c.Dropped != 1 || c.Retried != winner-1 || c.Wasted() != 1 || c.UsedTime != time.Second*time.Duration(2-winner) ||
			c.WastedTime != time.Second*time.Duration(winner-1) {
			t.Errorf("%+v", c)
		}
	}
}

// "Since Lambda threads are used throughout the training process, these Lambdas
// quickly become 'warm' …" (§6): cold starts are among the first durations alone, and
// the timeout forgets them.
func TestColdStartsAreForgotten(t *testing.T) {
	s := brief()
	d := &durations{}
	for range s.Timeout.Window {
		d.add(400*time.Millisecond, s.Timeout.Window)
	}
	cold := d.timeout(s.Timeout, 1)
	for range s.Timeout.Window {
		d.add(20*time.Millisecond, s.Timeout.Window)
	}
	if warm := d.timeout(s.Timeout, 1); cold != 800*time.Millisecond || warm != 40*time.Millisecond {
		t.Errorf("cold %v, warm %v", cold, warm)
	}
}
