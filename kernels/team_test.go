package kernels_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

func TestRunCoversEveryChunkOnce(t *testing.T) {
	for _, workers := range []int{-1, 1, 2, 5} {
		for _, n := range []int{0, 1, 9, 10, 11, 1003} {
			t.Run(fmt.Sprintf("workers=%d/n=%d", workers, n), func(t *testing.T) {
				team := kernels.NewTeam(workers)
				defer team.Close()
				seen := make([]atomic.Int32, n)
				team.Run(n, 10, func(lo, hi int) {
					if lo%10 != 0 || hi != min(lo+10, n) {
						t.Errorf("chunk [%d,%d)", lo, hi)
					}
					for i := lo; i < hi; i++ {
						seen[i].Add(1)
					}
				})
				for i := range seen {
					if c := seen[i].Load(); c != 1 {
						t.Fatalf("%d visited %d times", i, c)
					}
				}
			})
		}
	}
}

// An observed team reports the chunks of each call that has several, also of a team that borrows its memory.
func TestObserve(t *testing.T) {
	const long = 20 * time.Millisecond
	owner := kernels.NewTeam(1)
	borrower := owner.Fork().(*kernels.Team)
	borrower.Borrow(owner)
	var calls []kernels.Chunks
	owner.Observe(func(c kernels.Chunks) { calls = append(calls, c) })
	for n := range 5 {
		calls = nil
		began := time.Now()
		borrower.Run(10*n, 10, func(lo, _ int) {
			if lo == 10 {
				time.Sleep(long)
			}
		})
		all := time.Since(began)
		if n < 2 {
			if calls != nil {
				t.Errorf("%d chunks: %+v", n, calls)
			}
			continue
		}
		if len(calls) != 1 || calls[0].Count != int32(n) {
			t.Fatalf("%d chunks: %+v", n, calls)
		}
		c := calls[0]
		if all < long+long/2 && c.Slowest != 1 || c.Longest < long || c.Total < c.Longest || c.Total > all { // no other chunk takes as long
			t.Errorf("%+v of %v", c, all)
		}
	}
}

// Three chunks wait for one another, repeatedly after the team was idle.
func TestWorkersWorkAtOnce(t *testing.T) {
	team := kernels.NewTeam(3)
	defer team.Close()
	if team.Workers() != 3 {
		t.Fatalf("%d workers", team.Workers())
	}
	for range 100 {
		var arrived atomic.Int32
		all := make(chan struct{})
		team.Run(3, 1, func(int, int) {
			if arrived.Add(1) == 3 {
				close(all)
			}
			select {
			case <-all:
			case <-time.After(hosttest.Patience):
				t.Error("a worker works alone")
			}
		})
		if t.Failed() {
			return
		}
	}
}

// A team keeps no pointer to a kernel's arguments, which may be memory outside the heap,
// unmapped before the next collection.
func TestTeamForgetsItsArguments(t *testing.T) {
	team := kernels.NewTeam(2)
	defer team.Close()
	g, w := ring(5000, 8), []float32{1}
	for name, kernel := range map[string]func(dst, x []float32){
		"SpMM":   func(dst, x []float32) { flat.SpMM(team, dst, 1, g, x, false) },
		"MatMul": func(dst, x []float32) { flat.MatMul(team, dst, 5000, 1, 1, x, w, false) },
	} {
		t.Run(name, func(t *testing.T) {
			freed := make(chan struct{})
			func() {
				x := make([]float32, 5000)
				runtime.AddCleanup(&x[0], func(c chan struct{}) { close(c) }, freed)
				kernel(make([]float32, 5000), x)
			}()
			for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline); {
				runtime.GC()
				select {
				case <-freed:
					return
				case <-time.After(time.Millisecond):
				}
			}
			t.Fatal("x is still reachable")
		})
	}
}

// Ranges of RunWeighted cover the rows, are the same for any team, and weigh
// no more than a chunk and one row.
func TestRunWeighted(t *testing.T) {
	one, three := kernels.NewTeam(1), kernels.NewTeam(3)
	defer one.Close()
	defer three.Close()
	rapid.Check(t, func(t *rapid.T) {
		degrees := rapid.SliceOfN(rapid.OneOf(
			rapid.Int64Range(0, 3), rapid.Int64Range(0, 3000), rapid.Just(int64(60000)),
		), 0, 60).Draw(t, "degrees")
		offsets := []int64{rapid.Int64Range(0, 1<<40).Draw(t, "first")}
		for _, d := range degrees {
			offsets = append(offsets, offsets[len(offsets)-1]+d)
		}
		ends := make([]int64, len(degrees)+1) // ends[lo] = hi of the range that starts there
		one.RunWeighted(offsets, func(lo, hi int) { ends[lo] = int64(hi) })
		next := 0
		for next < len(degrees) {
			hi := int(ends[next])
			if hi <= next {
				t.Fatalf("no range starts at row %d", next)
			}
			if weight := offsets[hi-1] - offsets[next] + int64(hi-next); weight > 1<<15+1 {
				t.Fatalf("rows [%d,%d) weigh %d before the last one", next, hi, weight)
			}
			next = hi
		}
		three.RunWeighted(offsets, func(lo, hi int) {
			if atomic.AddInt64(&ends[lo], -int64(hi)) != 0 {
				panic("another range with three workers")
			}
		})
		for lo, hi := range ends {
			if hi != 0 {
				t.Fatalf("range [%d,%d) missing with three workers", lo, hi)
			}
		}
	})
}

func TestMisusePanics(t *testing.T) {
	team := kernels.NewTeam(2)
	defer team.Close()
	closed := kernels.NewTeam(2)
	closed.Close()
	closed.Close()
	v := make([]float32, 6)
	for name, misuse := range map[string]func(){
		"grain":          func() { team.Run(1, 0, func(int, int) {}) },
		"closed":         func() { closed.Run(2, 1, func(int, int) {}) },
		"nested":         func() { nested(team) },
		"short dst":      func() { flat.MatMul(team, v[:5], 2, 3, 1, v, v, false) },
		"short input":    func() { flat.MatMul(team, v, 2, 3, 4, v, v, false) },
		"negative":       func() { flat.MatMul(team, v, -1, 3, 4, v, v, false) },
		"short bias":     func() { flat.BiasReLUDropout(team, v, 2, 3, v, v[:2], true, nil) },
		"dropout of all": func() { flat.DropoutRows(team, v, 2, 3, v, &kernels.Dropout{P: 1}) },
		"few ids": func() {
			flat.DropoutRows(team, v, 2, 3, v, &kernels.Dropout{P: 0.5, IDs: kernels.HostVector(make([]uint32, 1))})
		},
		"label": func() { flat.SoftmaxCrossEntropy(team, v, 1, 6, v, []int32{6}, []uint8{1}, 1, 1) },
		"scales": func() {
			flat.SpMM(team, v, 3, kernels.Gather{Begin: []int64{0, 0}, End: []int64{0, 0}, RowScale: v[:1]}, v, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if _, constant := recover().(string); !constant {
					t.Fatal("no panic with a message")
				}
			}()
			misuse()
		})
	}
}

// nested calls Run from the chunk of its caller. The other worker does not, because its panic
// could not be recovered.
func nested(team *kernels.Team) {
	var failure atomic.Value
	team.Run(2, 1, func(int, int) {
		defer func() {
			if r := recover(); r != nil {
				failure.Store(r)
			}
		}()
		team.Run(2, 1, func(int, int) {})
	})
	panic(failure.Load())
}
