package pool

// Tuner is the autotuner of the number of Lambdas of a graph rank (§6). It stabilises the size of
// the queue of tasks that wait for a CPU.
type Tuner struct {
	number, limit int
	sizes         []int // of the queue at the last checks, since the number changed
}

const (
	checks  = 4    // number of last checks that a decision uses
	quickly = 0.1  // a queue shrinks quickly if it loses this fraction of its mean size per check
	step    = 0.25 // relative change of the number of Lambdas
)

// MaxInitial is the maximum initial number of Lambdas.
const MaxInitial = 100

// NewTuner returns a Tuner for a graph rank with the given number of intervals. More Lambdas than
// intervals would be idle.
func NewTuner(intervals int) *Tuner {
	limit := max(intervals, 1)
	return &Tuner{number: min(limit, MaxInitial), limit: limit}
}

// Number returns the target number of Lambdas.
func (t *Tuner) Number() int { return t.number }

// Check records the size of the queue at one of the periodic checks, and returns the new number of
// Lambdas.
//
// Design note: the paper does not define the case of an empty queue. CPU cores may then be idle,
// which §6 names as a sign of too few Lambdas. Therefore an empty queue counts as one that shrinks
// quickly.
func (t *Tuner) Check(queue int) int {
	t.sizes = append(t.sizes, queue)
	if len(t.sizes) < checks {
		return t.number
	}
	was := t.number
	switch {
	case t.grows():
		t.number = max(t.number-t.change(), 1)
	case t.shrinks():
		t.number = min(t.number+t.change(), t.limit)
	}
	if t.number != was {
		t.sizes = t.sizes[:0]
	} else {
		t.sizes = t.sizes[1:]
	}
	return t.number
}

func (t *Tuner) change() int { return max(int(step*float64(t.number)), 1) }

// grows reports whether the queue has grown at each check.
func (t *Tuner) grows() bool {
	for i := range t.sizes[1:] {
		if t.sizes[i+1] <= t.sizes[i] {
			return false
		}
	}
	return true
}

// shrinks reports whether the queue shrinks quickly on average over the checks, or is empty.
func (t *Tuner) shrinks() bool {
	first, last, sum := t.sizes[0], t.sizes[len(t.sizes)-1], 0
	for _, n := range t.sizes {
		sum += n
	}
	slope := float64(last-first) / float64(len(t.sizes)-1)
	mean := float64(sum) / float64(len(t.sizes))
	return sum == 0 || slope < 0 && slope <= -quickly*mean
}
