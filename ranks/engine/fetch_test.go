package engine

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"siafu/ranks/graphwork"
	"siafu/ranks/schedule"
)

// fetches records what a fetcher reads: the parts are the leg and the interval.
func fetches(f *fetcher, fail byte) func() [][2]byte {
	var mu sync.Mutex
	var order [][2]byte
	f.fetch = func(b []byte, _ bool) error {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, [2]byte{b[0], b[1]})
		if fail > 0 && b[1] == fail {
			return errors.New("unreadable")
		}
		return nil
	}
	return func() [][2]byte {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(order)
	}
}

func testWalk(legs int) *walk {
	w := &walk{}
	for l := range legs {
		w.legs = append(w.legs, leg{{Stage: schedule.GatherOwn, Layer: l}, {Stage: schedule.Apply, Layer: l}})
	}
	return w
}

// A fetcher reads the legs of intervals in ascending order, each once, at most fetchAhead bytes ahead of
// the tasks.
func TestFetchOrder(t *testing.T) {
	f := newFetcher(nil, nil)
	read := fetches(f, 0)
	const intervals, size = 10, fetchAhead / 3
	memory := make([]byte, size)
	parts := func(l leg, k int, visit graphwork.Visit) {
		b := slices.Clone(memory[:2])
		b[0], b[1] = byte(l[0].Layer), byte(k)
		visit(b, false)
		visit(memory[2:], true)
	}
	only := func(list [][2]byte) [][2]byte { // without the second parts
		var out [][2]byte
		for i := 0; i < len(list); i += 2 {
			out = append(out, list[i])
		}
		return out
	}
	for range 2 {
		before := len(read())
		f.start(testWalk(2), 1, intervals, parts)
		var want [][2]byte
		for l := range 2 {
			for k := range intervals {
				want = append(want, [2]byte{byte(l), byte(k)})
				awaitFetched(f, l*intervals+k) // a task that comes first reads for itself
				for _, stage := range []schedule.Stage{schedule.GatherOwn, schedule.Apply} {
					if _, _, err := f.await(schedule.Task{Stage: stage, Layer: l, Interval: k}); err != nil {
						t.Fatal(err)
					}
				}
				if ahead := len(only(read()[before:])) - len(want); ahead < 0 || ahead > 4 {
					t.Errorf("%d intervals ahead", ahead)
				}
			}
		}
		f.end()
		if got := only(read()[before:]); !slices.Equal(got, want) {
			t.Errorf("order %v", got)
		}
	}
}

// awaitFetched returns when the fetcher has read the k-th leg of an interval.
func awaitFetched(f *fetcher, k int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !f.states[k].fetched {
		f.changed.Wait()
	}
}

// Tasks in another order than the fetcher's fetch for themselves, and never wait for one another. An
// error belongs to the task that needs the part.
func TestFetchInAnyOrder(t *testing.T) {
	f := newFetcher(nil, nil)
	read := fetches(f, 7)
	parts := func(l leg, k int, visit graphwork.Visit) {
		b := make([]byte, fetchAhead)
		b[0], b[1] = byte(l[0].Layer), byte(k)
		visit(b, false)
	}
	f.start(testWalk(1), 1, 10, parts)
	for _, k := range []int{9, 3, 7, 0, 8} {
		_, _, err := f.await(schedule.Task{Stage: schedule.Apply, Interval: k})
		if (err != nil) != (k == 7) {
			t.Errorf("interval %d: %v", k, err)
		}
	}
	f.end()
	seen := map[[2]byte]bool{}
	for _, one := range read() {
		if seen[one] {
			t.Errorf("%v is read twice", one)
		}
		seen[one] = true
	}
	if !seen[[2]byte{0, 8}] {
		t.Error("interval 8 is not read")
	}
}
