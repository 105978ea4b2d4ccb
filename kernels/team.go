package kernels

import (
	"sort"
	"sync"
	"sync/atomic"

	"siafu/kernels/internal/avx"
)

// Team has the persistent workers of one rank. Work is cut into chunks whose bounds depend
// only on its size. Any worker may run any chunk, and no result may depend on which.
//
// A Team serves one caller at a time: a kernel must not be called on a Team
// from inside a chunk, nor by two goroutines at once.
//
// Design note: a kernel's arguments are stored in a slot of the Team during the call, not in a
// closure. A closure passed to another goroutine is an allocation, and an epoch allocates
// nothing.
type Team struct {
	workers int
	kernel  string
	set     avx.Set // the instruction set of package avx
	product product // of dense products
	rounds  bool    // operands of products, to bfloat16

	emulates bool // instructions for bfloat16, in tests
	wake     chan struct{}
	done     sync.WaitGroup
	busy     atomic.Bool
	closed   bool

	// The current work, written by the caller before it wakes workers.
	work     task
	n, grain int
	next     atomic.Int64

	slots []any       // a *T for each type of task that has run
	state [][]float32 // of a step
	*memory
}

// memory is the workspace of kernels.
type memory struct {
	// Partial results, one per chunk, summed in order of chunks.
	floats  []float32
	turned  []float32 // a product that is transposed
	rounded [2][]float32
	sums    []float64
	counts  []int64
	hubs    hubs    // of the SpMM that runs
	rowEnds []int64 // ends of rows with masked edges
	blocks  blockBuffers
	batches chan *edgeBatch // of attention
}

// task is work on the chunk [lo, hi).
type task interface{ chunk(lo, hi int) }

// NewTeam starts workers-1 goroutines (the caller of a kernel is a worker too); workers below
// 1 means 1. Close ends them. The Team uses the best instructions that this machine has.
func NewTeam(workers int) *Team {
	t := &Team{workers: max(workers, 1), memory: new(memory)}
	if err := t.Use(avx.Best().String()); err != nil {
		panic("kernels: best instructions missing")
	}
	t.wake = make(chan struct{}, t.workers)
	for range t.workers - 1 {
		go t.serve()
	}
	return t
}

// Borrow makes t use the memory of owner, another Team of as many workers, from now on. Only
// one of the Teams that share memory may run at a time. Many Teams of one worker, each bound
// to its own rows, then need only one workspace per processor.
func (t *Team) Borrow(owner Ops) {
	o, ok := owner.(*Team)
	if !ok || t.workers != o.workers {
		panic("kernels: teams of different sizes share memory")
	}
	t.memory = o.memory
}

// Workers returns the number of workers, the caller included.
func (t *Team) Workers() int { return t.workers }

// Close ends the workers. The Team must be idle and must not be used again; a
// second Close does nothing.
func (t *Team) Close() {
	if !t.closed {
		t.closed = true
		close(t.wake)
	}
}

// Run calls body for the chunks [0,grain), [grain,2·grain)… of [0,n), several
// at a time and in no order. Body must be independent for each chunk. n ≤
// grain runs in the caller.
func (t *Team) Run(n, grain int, body func(lo, hi int)) {
	t.run(n, grain, bodyFunc(body))
}

type bodyFunc func(lo, hi int)

func (f bodyFunc) chunk(lo, hi int) { f(lo, hi) }

func (t *Team) run(n, grain int, work task) {
	if grain < 1 {
		panic("kernels: grain below 1")
	}
	if n <= 0 {
		return
	}
	if n <= grain {
		work.chunk(0, n)
		return
	}
	if t.closed {
		panic("kernels: closed team")
	}
	if !t.busy.CompareAndSwap(false, true) {
		panic("kernels: team used by two callers at once")
	}
	t.work, t.n, t.grain = work, n, grain
	t.next.Store(0)
	helpers := min(t.workers, (n+grain-1)/grain) - 1
	t.done.Add(helpers)
	for range helpers {
		t.wake <- struct{}{}
	}
	t.drain()
	t.done.Wait()
	t.work = nil
	t.busy.Store(false)
}

// serve runs the loop of a worker. A fast worker may take the wake-up of another worker. That is
// harmless, because every wake-up ends when no chunk is left.
func (t *Team) serve() {
	for range t.wake {
		t.drain()
		t.done.Done()
	}
}

func (t *Team) drain() {
	for {
		lo := (int(t.next.Add(1)) - 1) * t.grain
		if lo >= t.n {
			return
		}
		t.work.chunk(lo, min(lo+t.grain, t.n))
	}
}

// slot returns the Team's memory for the arguments of a type of task.
func slot[T any](t *Team) *T {
	for _, s := range t.slots {
		if p, ok := s.(*T); ok {
			return p
		}
	}
	p := new(T)
	t.slots = append(t.slots, p)
	return p
}

// do runs work with its arguments in their slot and clears the slot afterwards: an argument may
// be memory outside the heap, and a stale pointer to it would be invalid once it is unmapped.
func do[T any, P interface {
	*T
	task
}](t *Team, args T, n, grain int) {
	work := P(slot[T](t))
	*work = args
	t.run(n, grain, work)
	*work = *new(T)
}

// doWeighted runs do over rows weighted by edges, as runWeighted.
func doWeighted[T any, P interface {
	*T
	task
}](t *Team, args T, begin []int64, last int64) {
	work := P(slot[T](t))
	*work = args
	t.runWeighted(begin, last, work)
	*work = *new(T)
}

// chunkWeight is the edges plus rows of a chunk: large enough that a worker processes a
// community whose rows are in its cache, small enough to balance skewed degrees.
const chunkWeight = 1 << 15

// weightedTask maps chunks of equal weight to rows. The weight of the rows
// before r is begin[r]-begin[0]+r, so that empty rows count too.
type weightedTask struct {
	begin []int64
	last  int64
	inner task
}

func (w *weightedTask) before(r int) int64 {
	if r == len(w.begin) {
		return w.last - w.begin[0] + int64(r)
	}
	return w.begin[r] - w.begin[0] + int64(r)
}

func (w *weightedTask) chunk(lo, hi int) {
	for c := lo; c < hi; c++ {
		from, to := w.row(int64(c)*chunkWeight), w.row(int64(c+1)*chunkWeight)
		if from < to {
			w.inner.chunk(from, to)
		}
	}
}

// row returns the first row with at least weight before it.
func (w *weightedTask) row(weight int64) int {
	return sort.Search(len(w.begin), func(r int) bool { return w.before(r) >= weight })
}

// runWeighted runs work over the rows 0..len(begin)-1, of which row r starts
// at edge begin[r] (ascending) and the last ends at edge last.
func (t *Team) runWeighted(begin []int64, last int64, work task) {
	if len(begin) == 0 {
		return
	}
	w := weightedTask{begin, last, work}
	chunks := int((w.before(len(begin)) + chunkWeight - 1) / chunkWeight)
	do(t, w, chunks, 1)
}

// chunkElements is the size of a chunk of a kernel that streams over a matrix.
const chunkElements = 1 << 14

// rowGrain returns the number of rows of the given width in a chunk.
func rowGrain(width int) int { return max(chunkElements/max(width, 1), 1) }

// scratch returns n elements of *buf, which grows as needed.
func scratch[T any](buf *[]T, n int) []T {
	if cap(*buf) < n {
		*buf = make([]T, n)
	}
	return (*buf)[:n]
}

// checkMatrix panics unless v holds rows x cols elements.
func checkMatrix(v []float32, rows, cols int, short string) {
	if rows < 0 || cols < 0 {
		panic("kernels: negative size")
	}
	if len(v) < rows*cols {
		panic(short)
	}
}

// The messages of checkMatrix.
const (
	shortDst    = "kernels: short dst"
	shortInput  = "kernels: short input"
	shortVector = "kernels: short vector"
)
