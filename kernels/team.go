package kernels

import (
	"runtime"
	"sort"
	"sync/atomic"
	"time"

	"siafu/kernels/internal/avx"
)

// Team runs kernels. Work is cut into chunks whose bounds depend only on its size. Any worker may run
// any chunk, and no result may depend on which: the Team's own workers, and idle workers of a rank
// (Assist).
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
	wake     chan *division
	closed   bool

	slots []any       // a *T for each type of task that has run
	state [][]float32 // of a step
	*memory
}

// memory is the workspace of kernels.
type memory struct {
	division
	observe func(Chunks) // nil: none
	// Partial results, one per chunk, summed in order of chunks.
	floats  []float32
	turned  []float32 // a product that is transposed
	rounded [2][]float32
	sums    []float64
	counts  []int64
	hubs    hubs    // of the SpMM that runs
	rowEnds []int64 // ends of rows with masked edges
	blocks  blockBuffers
}

// task is work on the chunk [lo, hi).
type task interface{ chunk(lo, hi int) }

// NewTeam starts workers-1 goroutines (the caller of a kernel is a worker too); workers below
// 1 means 1. Close ends them. The Team uses the best instructions that this machine has.
func NewTeam(workers int) *Team {
	t := &Team{workers: max(workers, 1), memory: &memory{division: division{left: make(chan struct{}, 1)}}}
	if err := t.Use(avx.Best().String()); err != nil {
		panic("kernels: best instructions missing")
	}
	t.wake = make(chan *division, t.workers)
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
	chunks := (n + grain - 1) / grain
	t.open(work, n, grain, chunks)
	defer t.end()
	for range min(t.workers, chunks) - 1 {
		select {
		case t.wake <- &t.division:
		default: // all workers are called already
		}
	}
	if t.observe != nil {
		t.observe(t.timed())
		return
	}
	for t.step() {
	}
}

// Chunks describes a call of a kernel with several chunks.
type Chunks struct {
	Count, Slowest int32         // number of chunks; index of the longest one
	Total, Longest time.Duration // of all chunks; of the longest one
}

// Observe sets a function that receives the Chunks of each call that has several, on t and on Teams that borrow its memory. The
// Team must have one worker that nobody assists, which takes about 50 ns more for each chunk.
func (t *Team) Observe(f func(Chunks)) { t.observe = f }

// serve runs the loop of a worker.
func (t *Team) serve() {
	for d := range t.wake {
		for d.assist() {
		}
	}
}

// Assist runs a chunk of the work that t, or a Team that has borrowed its memory, does now, and reports whether there was
// one. Any goroutine may call it at any time.
func (t *Team) Assist() bool { return t.assist() }

// division is work that a caller divides among itself and workers that join it. A worker that comes late
// never delays the caller.
type division struct {
	work     task
	n, grain int
	next     atomic.Int64  // chunks that nobody has taken
	joined   atomic.Int64  // workers in a chunk, plus taken during the work, plus opened while workers may join
	left     chan struct{} // tells the caller that the last worker has left
}

const (
	taken      = 1 << 32
	opened     = 1 << 33
	eagerPolls = 1000
)

// open begins the work.
func (d *division) open(work task, n, grain, chunks int) {
	if !d.joined.CompareAndSwap(0, taken) {
		panic("kernels: team used by two callers at once")
	}
	d.work, d.n, d.grain = work, n, grain
	d.next.Store(int64(chunks))
	d.joined.Add(opened)
}

// end ends the work when all workers have left, also after a panic.
func (d *division) end() {
	d.next.Store(0)
	if d.joined.Add(-opened) > taken {
		d.await()
	}
	d.work = nil
	d.joined.Add(-taken)
}

// await waits for the last worker. A chunk is short, and a caller that sleeps needs longer to wake up.
func (d *division) await() {
	for range eagerPolls {
		select {
		case <-d.left:
			return
		default:
			runtime.Gosched()
		}
	}
	<-d.left
}

// assist joins the work for one chunk.
func (d *division) assist() bool {
	if !d.join() {
		return false
	}
	defer d.leave() // not in a loop, where it would allocate
	return d.step()
}

// join reports whether there is a chunk for a worker, which must then leave.
func (d *division) join() bool {
	for d.next.Load() > 0 {
		if v := d.joined.Load(); v < opened {
			return false
		} else if d.joined.CompareAndSwap(v, v+1) {
			return true
		}
	}
	return false
}

func (d *division) leave() {
	if d.joined.Add(-1) == taken {
		d.left <- struct{}{}
	}
}

// step runs the next chunk, in ascending order, unless all are taken.
func (d *division) step() bool {
	left := int(d.next.Add(-1))
	if left < 0 {
		return false
	}
	lo := ((d.n+d.grain-1)/d.grain - 1 - left) * d.grain
	d.work.chunk(lo, min(lo+d.grain, d.n))
	return true
}

// timed runs all chunks.
func (d *division) timed() (c Chunks) {
	for began := time.Now(); d.step(); c.Count++ {
		now := time.Now()
		took := now.Sub(began)
		if began, c.Total = now, c.Total+took; took > c.Longest {
			c.Longest, c.Slowest = took, c.Count
		}
	}
	return c
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
