package machine

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"siafu/internal/mapped"
)

// Limits are the rates of this machine with a number of threads, all of which run.
type Limits struct {
	Threads                    int
	MultiplyAdds, Exponentials float64 // of float32 a second, in registers and in the first cache
	Levels                     [Levels]Level
}

// Level is a cache or memory.
type Level struct {
	Name  string
	Bytes int             // of the cache, 0: memory
	Reads map[int]float64 // bytes a second, by the bytes of a random row, 0: sequential
}

// Levels is the number of levels: three caches and memory, which is Levels-1.
const Levels = 4

const (
	memoryBytes = 1 << 28 // that are read from memory
	longRow     = 1 << 18 // bytes that count as sequential
	someRows    = 1 << 14 // of a call at most
	manyRows    = 1 << 22 // random ids at most
	lookAhead   = 8       // rows
)

// meter measures with an array of memoryBytes.
type meter struct {
	loops
	threads int
	budget  time.Duration // of a rate
	x       []byte
}

// Measure returns the limits with a number of threads, and the rates of the given widths as in Level.
// Other load on the machine makes rates smaller: each is the best in the budget.
func Measure(set string, threads int, widths []int, budget time.Duration) Limits {
	a := mapped.NewArena()
	defer a.Free()
	m, sizes := newMeter(set, threads, budget, a), Caches()
	const steps, vectors = 1 << 11, 64
	l := Limits{Threads: threads}
	l.MultiplyAdds = m.rate(steps*m.elements, func(int, int) { m.multiplyAdds(steps, 1e-3, 1) })
	l.Exponentials = m.rate(8*vectors*m.bytes/4, func(thread, _ int) {
		x := (*float32)(unsafe.Pointer(&m.x[m.part(thread)]))
		dst := (*float32)(unsafe.Add(unsafe.Pointer(x), vectors*m.bytes))
		for range 8 {
			m.exponentials(dst, x, vectors, &constants[0])
		}
	})
	for k := Levels - 1; k >= 0; k-- { // memory first, before a part of the array is in caches
		window := sizes[k] / 2
		switch k {
		case Levels - 1:
			window = memoryBytes / threads
		case Levels - 2:
			window /= threads // shared
		}
		l.Levels[k] = Level{[Levels]string{"L1", "L2", "L3", "memory"}[k], sizes[k], map[int]float64{}}
		for _, width := range widths {
			l.Levels[k].Reads[width] = m.reads(window, cmp.Or(width, min(window, longRow)))
		}
	}
	return l
}

// newMeter returns a meter whose array has space behind it, for a last vector.
func newMeter(set string, threads int, budget time.Duration, a *mapped.Arena) *meter {
	m := &meter{loopsOf(set), threads, budget, mapped.Make[byte](a, memoryBytes+1<<16)}
	m.x[0] = 0x3f // of floats of 0.75; pages that were never written share one page
	for n := 1; n < len(m.x); n *= 2 {
		copy(m.x[n:], m.x[:n])
	}
	return m
}

// AtLeast returns the larger rates of two measurements with the same arguments.
func (l Limits) AtLeast(o Limits) Limits {
	l.MultiplyAdds, l.Exponentials = max(l.MultiplyAdds, o.MultiplyAdds), max(l.Exponentials, o.Exponentials)
	for k := range l.Levels {
		reads := maps.Clone(l.Levels[k].Reads)
		for width, rate := range o.Levels[k].Reads {
			reads[width] = max(reads[width], rate)
		}
		l.Levels[k].Reads = reads
	}
	return l
}

// rate returns the best amount a second of a round of 2 ms, in which each thread makes calls of the given amount.
func (m *meter) rate(amount int, call func(thread, n int)) (best float64) {
	const round = 2 * time.Millisecond
	calls := make([]int, m.threads)
	for began := time.Now(); best == 0 || time.Since(began) < m.budget; {
		var done atomic.Int64
		var all sync.WaitGroup
		start := time.Now()
		for t := range m.threads {
			all.Go(func() {
				before := calls[t]
				for more := true; more; more = time.Since(start) < round {
					call(t, calls[t])
					calls[t]++
				}
				done.Add(int64(calls[t] - before))
			})
		}
		all.Wait()
		best = max(best, float64(done.Load())*float64(amount)/time.Since(start).Seconds())
	}
	return best
}

// part returns the first byte of a thread's part of the array.
func (m *meter) part(thread int) int { return thread * (memoryBytes / m.threads) }

// reads returns the rate at which all threads read rows of their windows in random order, in bytes a second.
func (m *meter) reads(window, width int) (rate float64) {
	rows := powerOf2(window / width)
	ids := randomIDs(rows)
	chunk := min(powerOf2(max(8*longRow/width, 1)), someRows)
	chunks := (len(ids) - lookAhead) / chunk
	for _, ahead := range []int{0, lookAhead} {
		rate = max(rate, m.rate(chunk*width, func(thread, n int) {
			m.rows(&m.x[m.part(thread)], width, (width+m.bytes-1)/m.bytes, &ids[n%chunks*chunk], chunk, ahead)
		}))
	}
	return rate
}

// powerOf2 returns the largest power of 2 up to n.
func powerOf2(n int) int { return 1 << (bits.Len(uint(n)) - 1) }

// randomIDs returns ids of rows, a power of 2, by Knuth's generator. Its period is the number of rows. The first
// ids follow again, for prefetches.
func randomIDs(rows int) []uint32 {
	ids := make([]uint32, min(max(rows, someRows), manyRows)+lookAhead)
	for i := range ids[1:] {
		ids[i+1] = uint32((uint64(ids[i])*6364136223846793005 + 1442695040888963407) % uint64(rows))
	}
	return ids
}

// Caches returns the bytes of the caches, and 0 for memory. The first two are the processor's, or 32 KiB and
// 512 KiB if it does not report them. The third one is measured, because a virtual machine may report all caches
// of its host: it is the largest array whose rate exceeds the geometric mean of the rates in that cache and in
// memory.
var Caches = sync.OnceValue(func() [Levels]int {
	a := mapped.NewArena()
	defer a.Free()
	m := newMeter("", 1, 50*time.Millisecond, a)
	rate := func(window int) float64 { return m.reads(window, 512) }
	l1, l2 := cacheSizes()
	l1, l2 = cmp.Or(l1, 32<<10), cmp.Or(l2, 512<<10)
	size := 4 * l2
	for least := math.Sqrt(rate(size) * rate(memoryBytes)); 2*size < memoryBytes && rate(2*size) > least; {
		size *= 2
	}
	return [Levels]int{l1, l2, size}
})
