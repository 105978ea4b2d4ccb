package pool

import (
	"slices"
	"time"
)

// durations are the newest durations of a kind of task, at most Timeout.Window.
type durations struct {
	recent []time.Duration
	next   int // index to overwrite next, once recent is full
}

// add adds a duration, replacing the oldest one.
func (d *durations) add(x time.Duration, window int) {
	if len(d.recent) < window {
		d.recent = append(d.recent, x)
		return
	}
	d.recent[d.next] = x
	d.next = (d.next + 1) % window
}

// timeout returns the timeout of the n-th attempt at a task. A quantile below 1 is robust: a
// few stragglers do not change it.
func (d *durations) timeout(t Timeout, n int) time.Duration {
	wait := t.Ceiling
	if len(d.recent) >= t.Few {
		sorted := slices.Sorted(slices.Values(d.recent))
		q := sorted[int(t.Quantile*float64(len(sorted)-1))]
		wait = time.Duration(min(t.Factor*float64(q), float64(t.Ceiling)))
	}
	wait = max(wait, t.Floor)
	for ; n > 1 && wait < t.Ceiling; n-- {
		wait *= 2
	}
	return min(wait, t.Ceiling)
}
