package tensor

import (
	"testing"
	"time"

	"siafu/kernels/task"
	"siafu/lambda/bill"
)

// Each attempt is charged once, in the class of its outcome, for any order of the reports of
// its end and its time, or without them.
func TestEachAttemptIsChargedOnce(t *testing.T) {
	const limit, life = time.Minute, 2 * time.Minute
	first, second := task.Name{Interval: 3, Attempt: 1}, task.Name{Interval: 3, Attempt: 2}
	took := func(n task.Name, ms int) *task.Spent {
		return &task.Spent{Name: n, Init: time.Millisecond, Work: time.Duration(ms-1) * time.Millisecond}
	}
	for _, c := range []struct {
		name string
		do   func(a *account)
		want map[bill.Class]time.Duration // of one invocation each
	}{
		{"with its result", func(a *account) { a.addUsage(took(first, 7)); a.markUsed(first, 1) },
			map[bill.Class]time.Duration{bill.FirstUsed: 7 * time.Millisecond}},
		{"behind its result", func(a *account) { a.markUsed(first, 1); a.addUsage(took(first, 7)) },
			map[bill.Class]time.Duration{bill.FirstUsed: 7 * time.Millisecond}},
		{"twice", func(a *account) {
			a.markUsed(first, 1)
			a.addUsage(took(first, 7))
			a.addUsage(took(first, 9))
			a.markWastedUnlessUsed(first, 2)
		}, map[bill.Class]time.Duration{bill.FirstUsed: 7 * time.Millisecond}},
		{"a result and its duplicate", func(a *account) {
			a.markUsed(first, 1)
			a.markWastedUnlessUsed(first,
				2)
			a.addUsage(took(first, 7))
		}, map[bill.Class]time.Duration{bill.FirstUsed: 7 * time.Millisecond}},
		{"a later attempt, and the first one too late", func(a *account) {
			a.begin(second, 1)
			a.markUsed(second, 2)
			a.addUsage(took(second, 3))
			a.addUsage(took(first, 90))
			a.markWastedUnlessUsed(first, 100)
		}, map[bill.Class]time.Duration{bill.Retried: 3 * time.Millisecond, bill.Wasted: 90 * time.Millisecond}},
		{"a failure", func(a *account) { a.markWastedUnlessUsed(first, 1); a.addUsage(took(first, 5)) },
			map[bill.Class]time.Duration{bill.Wasted: 5 * time.Millisecond}},
		{"throttled", func(a *account) { a.drop(first); a.addUsage(took(first, 5)) }, nil},
		{"never sent", func(a *account) { a.drop(first); a.markUsed(second, 1); a.addUsage(took(second, 5)) }, nil},
		{"a result of which nobody says what it took", func(a *account) { a.markUsed(first, 30*time.Millisecond) },
			map[bill.Class]time.Duration{bill.FirstUsed: 30 * time.Millisecond}},
		{"paid, and no result", func(a *account) { a.addUsage(took(first, 5)) },
			map[bill.Class]time.Duration{bill.Wasted: 5 * time.Millisecond}},
		{"nothing is ever heard", func(*account) {}, map[bill.Class]time.Duration{bill.Wasted: limit}},
	} {
		for way, end := range map[string]func(a *account){"its life is over": func(a *account) { a.expire(life) },
			"the run ends": (*account).settle} {
			a := &account{tariff: bill.Tariff{Step: time.Millisecond}, limit: limit, life: life, open: map[task.Name]*attempt{}}
			a.begin(first, 0)
			c.do(a)
			end(a)
			for class, u := range a.usage {
				want, due := c.want[bill.Class(class)]
				if u.Billed != want || (u.Invocations == 1) != due || u.Invocations > 1 {
					t.Errorf("%s, then %s: %d of class %d for %v, want %v", c.name, way, u.Invocations, class, u.Billed, want)
				}
			}
			if len(a.open) > 0 {
				t.Errorf("%s, then %s: %d attempts are never charged", c.name, way, len(a.open))
			}
		}
	}
}

// Attempts that may still be reported are not charged yet.
func TestNothingIsChargedEarly(t *testing.T) {
	a := &account{tariff: bill.Tariff{Step: time.Millisecond}, limit: time.Second, life: time.Minute, open: map[task.Name]*attempt{}}
	name := task.Name{Attempt: 1}
	a.begin(name, time.Second)
	if a.expire(time.Minute); len(a.open) != 1 || a.usage != (bill.Usage{}) {
		t.Errorf("%+v", a.usage)
	}
}
