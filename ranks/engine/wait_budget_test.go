package engine

import (
	"math"
	"slices"
	"testing"
	"time"

	"siafu/halo"
	"siafu/ranks/schedule"
)

// aged is a source of ghosts with only their age.
type aged struct {
	halo.Receiver
	oldest int
}

func (a aged) Oldest(halo.Slot) int { return a.oldest }

// "The GA task of v uses stale values from its neighbors" (Dorylus, OSDI'21, §5.2), but never
// missing values: zeros are values of no epoch. A gather of old values is held back while a
// gather of new ones, or any other task, can run.
func TestGathersReadReceivedRows(t *testing.T) {
	const never, before, now, ahead = 3, 4, 5, 6
	gather := func(interval int) job {
		return job{Task: schedule.Task{Stage: schedule.GatherGhosts, Epoch: now, Interval: interval},
			access: accessOf(schedule.GatherGhosts)}
	}
	apply := job{Task: schedule.Task{Stage: schedule.Apply, Epoch: now}}
	for name, c := range map[string]struct {
		own          []int // epochs of the own intervals' rows
		ghosts       int
		fresh, hurry int // found positions in the queue, -1: none
	}{
		"all of the epoch":            {[]int{now, now}, now, 0, 0},
		"some ahead":                  {[]int{now, ahead}, ahead, 0, 0},
		"old ghosts":                  {[]int{now, now}, before, 2, 0},
		"old rows of its own":         {[]int{now, before}, now, 2, 0},
		"ghosts that never came":      {[]int{now, now}, never, 2, 2},
		"rows that were never there":  {[]int{now, never}, now, 2, 2},
		"ghosts that miss some still": {[]int{now, now}, 0, 2, 2},
		"a rank without ghosts":       {[]int{now, now}, math.MaxInt, 0, 0},
	} {
		f := &AsyncScheduler{gates: []*gate{{}}, executor: &asyncRank{ghosts: aged{oldest: c.ghosts}},
			taskQueue: taskQueue{queue: []job{gather(0), gather(1), apply}}, trained: never}
		f.gates[0].published[0] = published{c.own, slices.Min(c.own)}
		fresh, held := f.findRunnable(false)
		hurry, _ := f.findRunnable(true)
		if fresh != c.fresh || hurry != c.hurry || held != (fresh != hurry) {
			t.Errorf("%s: position %d is found, held back: %t, and %d if old rows are allowed", name, fresh, held, hurry)
		}
	}
}

// Tasks of slow intervals go first, and messages before all of them.
func TestSlowIntervalsGoFirst(t *testing.T) {
	f := &AsyncScheduler{taskQueue: taskQueue{queue: []job{{Task: schedule.Task{Epoch: 9}}}, received: 1}}
	for k, epoch := range []int{2, 1, 2, 3, 1} {
		f.enqueue(schedule.Task{Epoch: epoch, Interval: k})
	}
	var order []int
	for _, j := range f.queue {
		order = append(order, 10*j.Epoch+j.Interval)
	}
	if want := []int{90, 11, 14, 20, 22, 33}; !slices.Equal(order, want) {
		t.Errorf("epochs and intervals are %v, want %v", order, want)
	}
}

// A rank waits in total for its multiple of the mean epoch time without such waits.
func TestWaitBudget(t *testing.T) {
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	for name, c := range map[string]struct {
		waitBudget
		over bool
		end  bool // the wait has a known end
	}{
		"not at all":  {waitBudget{start: ago(time.Hour)}, true, false},
		"first epoch": {waitBudget{multiple: 1, start: ago(time.Hour), since: ago(time.Minute)}, false, false},
		"half of it": {waitBudget{multiple: 1, start: ago(100 * time.Minute), epochs: 10,
			since: ago(5 * time.Minute)}, false, true},
		"all of it": {waitBudget{multiple: 1, start: ago(100 * time.Minute), epochs: 10,
			since: ago(11 * time.Minute)}, true, true},
		"twice is not over": {waitBudget{multiple: 2, start: ago(100 * time.Minute), epochs: 10,
			since: ago(11 * time.Minute)}, false, true},
		"over in two waits": {waitBudget{multiple: 1, start: ago(100 * time.Minute), epochs: 10, spent: 8 * time.Minute,
			since: ago(3 * time.Minute)}, true, true},
		"waits are not counted": {waitBudget{multiple: 1, start: ago(100 * time.Minute), epochs: 10, waited: 60 * time.Minute,
			since: ago(5 * time.Minute)}, true, true},
		"over, and works": {waitBudget{multiple: 1, start: ago(100 * time.Minute), epochs: 10, spent: 12 * time.Minute}, true, false},
	} {
		c.now = time.Now
		if c.waitBudget.exhausted() != c.over || c.deadline().IsZero() == c.end {
			t.Errorf("%s: exhausted is %t, deadline %v", name, c.waitBudget.exhausted(), c.deadline())
		}
	}
	l := waitBudget{multiple: 1, now: time.Now, start: ago(time.Minute), since: ago(time.Second)}
	l.nextEpoch()
	if l.epochs != 1 || l.waited < time.Second || l.spent != 0 || l.since.IsZero() {
		t.Errorf("after an epoch in which it waits: %+v", l)
	}
}
