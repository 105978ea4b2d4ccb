package machine

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
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

// Measure raises the limits to those with a number of threads, and to the rates of the given widths as in Level. sizes
// are those of Caches. Other load on the machine makes rates smaller: each is the best in the budget and in l.
func (l *Limits) Measure(set string, threads int, sizes [Levels]int, widths []int, budget time.Duration) {
	a := mapped.NewArena()
	defer a.Free()
	m := newMeter(set, threads, budget, a)
	const steps, repeats, vectors = 1 << 13, 64, 128 // calls take about 10 microseconds
	l.Threads = threads
	l.MultiplyAdds = max(l.MultiplyAdds, m.rate(steps*m.elements, func(int, int) { m.multiplyAdds(steps, 1e-3, 1) }))
	l.Exponentials = max(l.Exponentials, m.rate(repeats*vectors*m.bytes/4, func(thread, _ int) {
		x := unsafe.Pointer(&m.x[m.part(thread)])
		for range repeats {
			m.exponentials((*float32)(unsafe.Add(x, vectors*m.bytes)), (*float32)(x), vectors, &constants[0])
		}
	}))
	for k := Levels - 1; k >= 0; k-- { // memory first, before a part of the array is in caches
		window := sizes[k] / 2
		switch k {
		case Levels - 1:
			window = memoryBytes / threads
		case Levels - 2:
			window /= threads // shared
		}
		reads := map[int]float64{}
		for _, width := range widths {
			reads[width] = max(l.Levels[k].Reads[width], m.reads(k, window, cmp.Or(width, min(window, longRow))))
		}
		l.Levels[k] = Level{[Levels]string{"L1", "L2", "L3", "memory"}[k], sizes[k], reads}
	}
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

// rate returns the amount a second in which all threads make calls of the given amount, in the second best millisecond:
// the clock of a virtual machine may jump once.
func (m *meter) rate(amount int, call func(thread, n int)) float64 {
	var all sync.WaitGroup
	var calls atomic.Int64
	var ended atomic.Bool
	for t := 1; t < m.threads; t++ {
		all.Go(func() {
			for n := 0; !ended.Load(); n++ {
				call(t, n)
				calls.Add(1)
			}
		})
	}
	began, rates := time.Now(), []float64{}
	for n, start, before := 0, began, int64(0); len(rates) < 2 || start.Sub(began) < m.budget; n++ {
		call(0, n)
		done, now := calls.Add(1), time.Now()
		if seconds := now.Sub(start).Seconds(); seconds > 1e-3 {
			rates = append(rates, float64(done-before)*float64(amount)/seconds)
			start, before = time.Now(), calls.Load() // in this order: a pause makes the rate smaller
		}
	}
	ended.Store(true)
	all.Wait()
	slices.Sort(rates)
	return rates[len(rates)-2]
}

// part returns the first byte of a thread's part of the array.
func (m *meter) part(thread int) int { return thread * (memoryBytes / m.threads) }

// reads returns the rate at which all threads read rows of their windows in random order, in bytes a second. A call
// reads less from a slower level.
func (m *meter) reads(level, window, width int) (rate float64) {
	rows := powerOf2(window / width)
	ids := randomIDs(rows)
	chunk := min(powerOf2(max(1<<22>>level/width, 1)), someRows>>level)
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
func Caches(set string) [Levels]int {
	a := mapped.NewArena()
	defer a.Free()
	m := newMeter(set, 1, 50*time.Millisecond, a)
	rate := func(window int) float64 { return m.reads(Levels-1, window, 512) }
	l1, l2 := cacheSizes()
	l1, l2 = cmp.Or(l1, 32<<10), cmp.Or(l2, 512<<10)
	size := 4 * l2
	for least := math.Sqrt(rate(size) * rate(memoryBytes)); 2*size < memoryBytes && rate(2*size) > least; {
		size *= 2
	}
	return [Levels]int{l1, l2, size}
}
