package pool

import (
	"testing"

	"pgregory.net/rapid"
)

// "We develop an autotuner that starts the pipeline by using min(#intervals, 100) as
// the number of Lambdas where intervals represents the number of vertex intervals on
// each GS." (§6)
func TestStartsAtIntervalsOrAHundred(t *testing.T) {
	for intervals, want := range map[int]int{1: 1, 64: 64, 99: 99, 100: 100, 101: 100, 5000: 100} {
		if got := NewTuner(intervals).Number(); got != want {
			t.Errorf("%d for %d intervals, want %d", got, intervals, want)
		}
	}
}

// after returns the number of Lambdas after checks of the queue.
func after(intervals int, queue ...int) (before, number int) {
	t := NewTuner(intervals)
	before = t.Number()
	for _, n := range queue {
		t.Check(n)
	}
	return before, t.Number()
}

// "If the size of the queue constantly grows, this indicates that CPU cores have too
// many tasks to process, and hence we scale down the number of Lambdas." (§6)
func TestScalesDownWhereTheQueueGrows(t *testing.T) {
	if before, now := after(40, 10, 11, 12, 13); now >= before {
		t.Errorf("from %d to %d", before, now)
	}
	if before, now := after(40, 10, 30, 29, 60); now != before {
		t.Errorf("a queue that does not grow constantly: from %d to %d", before, now)
	}
	if before, now := after(40, 10, 11, 12); now != before {
		t.Errorf("three checks: from %d to %d", before, now)
	}
}

// "If the queue quickly shrinks, we scale up the number of Lambdas." (§6)
func TestScalesUpWhereTheQueueShrinksQuickly(t *testing.T) {
	if before, now := after(400, 100, 70, 50, 30); now <= before {
		t.Errorf("from %d to %d", before, now)
	}
	if before, now := after(400, 100, 99, 99, 98); now != before {
		t.Errorf("a queue that shrinks slowly: from %d to %d", before, now)
	}
}

// "Too few Lambdas would not generate enough task instances for the graph computation
// G to saturate CPU cores." (§6)
func TestScalesUpWhereTheQueueStaysEmpty(t *testing.T) {
	if before, now := after(400, 0, 0, 0, 0); now <= before {
		t.Errorf("from %d to %d", before, now)
	}
}

// "The goal here is to stabilize the size of the queue so that the number of Lambdas matches
// the pace of graph tasks." (§6) From any initial number, the number of Lambdas converges to
// the pace of the CPU cores, or to its limit. Lambdas produce, and cores process, a fixed
// number of tasks per check.
func TestMatchesThePaceOfGraphTasks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		intervals := rapid.IntRange(1, 600).Draw(t, "intervals")
		each := rapid.Float64Range(0.5, 5).Draw(t, "tasks of a Lambda")
		cores := rapid.Float64Range(5, 500).Draw(t, "tasks of the cores")
		tuner := NewTuner(intervals)
		queue, sum := 0.0, 0.0
		const warm, counted = 300, 300
		for k := range warm + counted {
			queue = max(queue+float64(tuner.Number())*each-cores, 0)
			n := tuner.Check(int(queue))
			if n < 1 || n > intervals {
				t.Fatalf("%d Lambdas for %d intervals", n, intervals)
			}
			if k >= warm {
				sum += float64(n)
			}
		}
		mean, want := sum/counted, min(max(cores/each, 1), float64(intervals))
		if mean < 0.6*want-1 || mean > 1.3*want+1 {
			t.Fatalf("%.1f Lambdas in the mean, %.1f have the pace of the cores", mean, want)
		}
	})
}

// A queue of constant size does not change the number.
func TestStableQueueKeepsTheNumber(t *testing.T) {
	if before, now := after(400, 50, 50, 50, 50, 50, 50, 50, 50); now != before {
		t.Errorf("from %d to %d", before, now)
	}
}
