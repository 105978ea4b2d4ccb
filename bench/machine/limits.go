package machine

import (
	"cmp"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"siafu/internal/mapped"
)

// Limits are the rates of this machine with a number of threads, all of which run.
type Limits struct {
	Threads      int
	MultiplyAdds float64 // of float32 a second, in registers
	Levels       [Levels]Level
}

// Level is a cache or memory, and its rates in bytes a second.
type Level struct {
	Name       string
	Bytes      int             // of the cache, 0: memory
	Sequential float64         // reads
	Rows       map[int]float64 // reads of random rows, by the bytes of a row
}

// Levels is the number of levels: three caches and memory, which is Levels-1.
const Levels = 4

// memoryBytes is the size of the array that is read from memory.
const memoryBytes = 1 << 28

// meter measures with an array of memoryBytes.
type meter struct {
	loops
	threads int
	budget  time.Duration // of a rate
	x       []byte
}

// Measure returns the limits with a number of threads, and the rates of rows of the given widths in bytes.
// Other load on the machine makes rates smaller: each is the best in the budget.
func Measure(set string, threads int, widths []int, budget time.Duration) Limits {
	a := mapped.NewArena()
	defer a.Free()
	m, sizes := newMeter(set, threads, budget, a), Caches(set)
	const steps = 1 << 17
	l := Limits{Threads: threads}
	l.MultiplyAdds = float64(threads*steps*m.elements) / m.seconds(func(int, int) { m.multiplyAdds(steps, 1e-3, 1) })
	for k := Levels - 1; k >= 0; k-- { // memory first, before a part of the array is in caches
		at := &l.Levels[k]
		*at = Level{Name: [Levels]string{"L1", "L2", "L3", "memory"}[k], Bytes: sizes[k], Rows: map[int]float64{}}
		window := memoryBytes / threads
		switch k {
		case Levels - 2:
			window = at.Bytes / 2 / threads // shared
		case 0, 1:
			window = at.Bytes / 2
		}
		at.Sequential = m.sequential(window, 1<<27>>k)
		for _, width := range widths {
			at.Rows[width] = m.random(window, width, 1<<(19-4*k/3))
		}
	}
	return l
}

func newMeter(set string, threads int, budget time.Duration, a *mapped.Arena) *meter {
	m := &meter{loopsOf(set), threads, budget, mapped.Make[byte](a, memoryBytes+1<<16)} // the end of a last vector
	m.x[0] = 1                                                                          // pages that were never written share one page
	for n := 1; n < len(m.x); n *= 2 {
		copy(m.x[n:], m.x[:n])
	}
	return m
}

// AtLeast returns the larger rates of two measurements with the same arguments.
func (l Limits) AtLeast(o Limits) Limits {
	l.MultiplyAdds = max(l.MultiplyAdds, o.MultiplyAdds)
	for k := range l.Levels {
		at := &l.Levels[k]
		at.Sequential = max(at.Sequential, o.Levels[k].Sequential)
		for width, rate := range o.Levels[k].Rows {
			at.Rows[width] = max(at.Rows[width], rate)
		}
	}
	return l
}

// seconds returns the least time of a round, in which each thread calls work with the round's number. Threads wait
// for a round actively: to wake one takes as long as a part of a round.
func (m *meter) seconds(work func(thread, round int)) float64 {
	var begun, done, ended atomic.Int64
	for t := 1; t < m.threads; t++ {
		go func() {
			for round := 0; ; round++ {
				for begun.Load() == int64(round) {
					if ended.Load() > 0 {
						return
					}
					runtime.Gosched()
				}
				work(t, round)
				done.Add(1)
			}
		}()
	}
	defer ended.Store(1)
	best := math.Inf(1)
	for began, round := time.Now(), 0; round < 2 || time.Since(began) < m.budget; round++ {
		start := time.Now()
		begun.Add(1)
		work(0, round)
		for done.Load() < int64((round+1)*(m.threads-1)) {
			runtime.Gosched()
		}
		best = min(best, time.Since(start).Seconds())
	}
	return best
}

// part returns the first byte of a thread's part of the array.
func (m *meter) part(thread int) int { return thread * (memoryBytes / m.threads) }

// sequential returns the rate of all threads, each of which reads its window again and again, an amount of
// bytes in a round.
func (m *meter) sequential(window, amount int) float64 {
	window -= window % blockBytes
	chunk := min(window, amount)
	calls := amount / chunk
	return float64(m.threads*calls*chunk) / m.seconds(func(thread, round int) {
		for k := range calls {
			at := (round*calls + k) % (window / chunk) * chunk
			m.read(&m.x[m.part(thread)+at], chunk/blockBytes)
		}
	})
}

// random returns the rate of all threads, each of which reads count rows of its window in a round, in the order of
// a permutation of rows, whose number is a power of 2.
func (m *meter) random(window, width, count int) (rate float64) {
	rows := 1
	for 2*rows*width <= window {
		rows *= 2
	}
	ids := permutation(rows)
	chunk := min(rows, count)
	calls := count / chunk
	list, vectors := m.rowLoops(width)
	for _, load := range list {
		rate = max(rate, float64(m.threads*calls*chunk*width)/m.seconds(func(thread, round int) {
			for k := range calls {
				at := (round*calls + k) % (rows / chunk) * chunk
				load(&m.x[m.part(thread)], width, vectors, &ids[at], chunk)
			}
		}))
	}
	return rate
}

// permutation returns a permutation of rows, a power of 2, by Knuth's generator, which has a full period. The
// first ids follow again, for prefetches.
func permutation(rows int) []uint32 {
	ids := make([]uint32, rows+lookAhead)
	for i := 1; i < len(ids); i++ {
		ids[i] = uint32((uint64(ids[i-1])*6364136223846793005 + 1442695040888963407) % uint64(rows))
	}
	return ids
}

// caches has the sizes of the caches once they are known.
var caches struct {
	sync.Once
	bytes [Levels]int
}

// Caches returns the bytes of the caches, and 0 for memory. The first two are the processor's, or 32 KiB and
// 512 KiB if it does not report them. The third one is measured, because a virtual machine may report all caches
// of its host: it is the largest array whose rate exceeds the geometric mean of the rates in that cache and in
// memory.
func Caches(set string) [Levels]int {
	caches.Do(func() {
		a := mapped.NewArena()
		defer a.Free()
		m := newMeter(set, 1, 50*time.Millisecond, a)
		rate := func(window int) float64 { return m.random(window, 512, 1<<15) }
		l1, l2 := cacheSizes()
		l1, l2 = cmp.Or(l1, 32<<10), cmp.Or(l2, 512<<10)
		size := 4 * l2
		for least := math.Sqrt(rate(size) * rate(memoryBytes)); 2*size < memoryBytes && rate(2*size) > least; {
			size *= 2
		}
		caches.bytes = [Levels]int{l1, l2, size}
	})
	return caches.bytes
}
