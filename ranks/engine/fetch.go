package engine

import (
	"runtime/debug"
	"slices"
	"sync"
	"time"
	"unsafe"

	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/ranks/graphwork"
	"siafu/ranks/schedule"
	"siafu/ranks/trace"
)

// fetchAhead is how many bytes are in memory, or on their way, for intervals that no task has begun.
const fetchAhead = 32 << 20

// leg is a sequence of tasks that an interval runs without a pause, by stage and layer.
type leg []schedule.Task

// addLeg adds the tasks of a stage to the current leg, if each depends on the task of its interval there,
// and begins a leg if all intervals must end an earlier stage first.
func (p *passBuilder) addLeg(t schedule.Task, after [][]schedule.ID) {
	paused := len(p.legs) == 0
	for _, list := range after {
		paused = paused || len(list) == 1
	}
	if paused {
		p.legs = append(p.legs, nil)
	}
	k := len(p.legs) - 1
	p.legs[k] = append(p.legs[k], t)
}

// indexOf returns the index of the leg of a task.
func indexOf(legs []leg, t schedule.Task) int {
	return slices.IndexFunc(legs, func(l leg) bool {
		return slices.ContainsFunc(l, func(o schedule.Task) bool { return o.Stage == t.Stage && o.Layer == t.Layer && o.Slice == t.Slice })
	})
}

// fetcher reads the parts of files that tasks need before the tasks run. A task then does not wait for the
// disk in the middle of its arithmetic, and an unreadable page is an error of its task. A leg of an interval
// is fetched at once. The fetcher goes through legs in their order, and through intervals in ascending
// order, as tasks do. A task that runs in another order, before its fetch, fetches itself.
//
// Design note: reads into buffers would need a second path to values in each kernel.
type fetcher struct {
	fetch    func(b []byte, write bool) error // Fetch of pool
	pool     *mapped.Pool                     // nil: the page cache
	recorder *trace.Recorder                  // of the goroutine, nil without a timeline

	mu      sync.Mutex
	changed *sync.Cond // a state, ahead or ended
	states  []fetchState
	ahead   int64 // bytes of parts that are fetched and not begun
	ended   bool
	over    chan struct{} // closed when the goroutine ends
	walk    *walk
	count   int // of intervals
	parts   visitParts
}

// visitParts calls visit with the parts of files of a leg of an interval. A part is read only after its
// visit.
type visitParts func(l leg, interval int, visit graphwork.Visit)

// fetchState is the state of a leg of an interval.
type fetchState struct {
	begun, fetched, used bool
	parts                [][]byte // that are fetched and not released
	bytes                int64
	err                  error
}

// fileReader reads the files of a walk's tasks: a fetcher, or nothing if values are in memory.
type fileReader interface {
	begin(s *lockstep, epoch int)
	await(t schedule.Task) (waited bool, read int64, err error)
	release(t schedule.Task)
	end()
}

// noFiles is the fileReader of values in memory.
type noFiles struct{}

func (noFiles) begin(*lockstep, int)                     {}
func (noFiles) await(schedule.Task) (bool, int64, error) { return false, 0, nil }
func (noFiles) release(schedule.Task)                    {}
func (noFiles) end()                                     {}

// fetches reports whether files are read ahead of tasks (--memory, --memory scratch=DIR).
func (e *Engine) fetches() bool { return e.Config.FetchesFiles() && !e.workers.teams[0].Remote() }

// fileReader returns the reader of the files of passes from a pool, nil: the page cache.
func (e *Engine) fileReader(p *mapped.Pool) fileReader {
	if !e.fetches() {
		return noFiles{}
	}
	return newFetcher(p, e.workers.fetches)
}

func newFetcher(p *mapped.Pool, r *trace.Recorder) *fetcher {
	f := &fetcher{fetch: p.Fetch, pool: p, recorder: r}
	f.changed = sync.NewCond(&f.mu)
	return f
}

// begin starts to fetch for the walk of a pass.
func (f *fetcher) begin(s *lockstep, epoch int) {
	f.start(s.pass.walk, epoch, len(s.intervals), s.visitParts)
}

func (f *fetcher) start(w *walk, epoch, intervals int, parts visitParts) {
	f.walk, f.count, f.parts = w, intervals, parts
	f.states = slices.Grow(f.states[:0], len(w.legs)*intervals)[:len(w.legs)*intervals]
	clear(f.states)
	f.ahead, f.ended, f.over = 0, false, make(chan struct{})
	go f.run(epoch)
}

// end ends a walk, after its tasks.
func (f *fetcher) end() {
	f.mu.Lock()
	f.ended = true
	f.changed.Broadcast()
	f.mu.Unlock()
	<-f.over
	for k := range f.states {
		f.states[k].release(f.pool)
	}
}

func (s *fetchState) release(p *mapped.Pool) {
	for _, b := range s.parts {
		p.Release(b)
	}
	s.parts = nil
}

// run fetches ahead of the tasks.
func (f *fetcher) run(epoch int) {
	defer close(f.over)
	for k := range f.states {
		f.mu.Lock()
		for f.ahead >= fetchAhead && !f.ended {
			f.changed.Wait()
		}
		free := !f.ended && !f.states[k].begun
		f.states[k].begun = f.states[k].begun || free
		ended := f.ended
		f.mu.Unlock()
		switch {
		case ended:
			return
		case free:
			began := time.Now()
			f.read(k)
			f.recorder.Begin()
			at := trace.Place{Epoch: int32(epoch), Layer: int32(f.walk.legs[k/f.count][0].Layer),
				Interval: int32(k % f.count), Read: f.states[k].bytes}
			f.recorder.Add(trace.Fetch, at, began, time.Now())
		}
	}
}

// read fetches a leg of an interval, which the caller has begun.
func (f *fetcher) read(k int) {
	parts, bytes, err := f.readParts(f.walk.legs[k/f.count], k%f.count)
	f.mu.Lock()
	defer f.mu.Unlock()
	at := &f.states[k]
	at.fetched, at.parts, at.bytes, at.err = true, parts, bytes, err
	if !at.used {
		f.ahead += bytes
	}
	f.changed.Broadcast()
}

func (f *fetcher) readParts(l leg, interval int) (parts [][]byte, bytes int64, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer mapped.Catch(&err)
	f.parts(l, interval, func(b []byte, write bool) {
		if err != nil {
			return
		}
		if err = f.fetch(b, write); err == nil {
			parts, bytes = append(parts, b), bytes+int64(len(b))
		}
	})
	return parts, bytes, err
}

// await returns when the files that a task reads are in memory. waited is false if they already are.
// read is the number of bytes that await itself read, or trace.None.
func (f *fetcher) await(t schedule.Task) (waited bool, read int64, err error) {
	k := indexOf(f.walk.legs, t)*f.count + t.Interval
	read = trace.None
	f.mu.Lock()
	at := &f.states[k]
	if !at.used {
		at.used = true
		f.ahead -= at.bytes
		f.changed.Broadcast()
	}
	if !at.begun {
		at.begun, waited = true, true
		f.mu.Unlock()
		f.read(k)
		f.mu.Lock()
		read = at.bytes
	}
	for ; !at.fetched; waited = true {
		f.changed.Wait()
	}
	defer f.mu.Unlock()
	return waited, read, at.err
}

// release releases the files of a leg of an interval after its last task.
func (f *fetcher) release(t schedule.Task) {
	for k, l := range f.walk.legs {
		if last := l[len(l)-1]; last.Stage == t.Stage && last.Layer == t.Layer && last.Slice == t.Slice {
			f.states[k*f.count+t.Interval].release(f.pool)
		}
	}
}

// awaitFetch waits for the files of a task, and counts the time.
func (s *lockstep) awaitFetch(worker int, t schedule.Task) error {
	if t.Interval == schedule.Whole || OfGhosts(t.Stage) {
		return nil
	}
	began := time.Now()
	waited, read, err := s.files.await(t)
	if waited {
		s.workers.fetched(worker, s.withPassEpoch(t), read, began, time.Now())
	}
	return err
}

// visitParts visits the parts of mapped files that a leg of an interval reads or writes. It is called
// while other tasks run.
func (s *lockstep) visitParts(l leg, interval int, do graphwork.Visit) {
	i, graph := s.intervals[interval], s.pass.route.graph
	type part struct {
		from  *byte
		bytes int
		write bool
	}
	var list []part
	visit := func(b []byte, write bool) {
		p := part{unsafe.SliceData(b), len(b), write}
		if mapped.IsFile(b) && !slices.Contains(list, p) {
			list = append(list, p)
			do(b, write)
		}
	}
	rows := func(m kernels.Mat, write bool) { visit(m.HostBytes(), write) }
	for _, t := range l {
		switch t.Stage {
		case schedule.LoadSlice:
			rows(i.part(graph.Layer(t.Layer).Rows), false)
		case schedule.LoadSliceBackward:
			rows(i.part(graph.Layer(t.Layer).Grads), false)
		case schedule.GatherSlice, schedule.GatherSliceBackward:
			graph.Layer(t.Layer).VisitSlice(i.lo, i.hi, t.Slice, t.Stage == schedule.GatherSliceBackward, visit)
		case schedule.GatherOwn, schedule.GatherGhosts:
			graph.Layer(t.Layer).VisitGather(i.lo, i.hi, false, visit)
		case schedule.GatherBackward, schedule.AddSums:
			graph.Layer(t.Layer).VisitGather(i.lo, i.hi, true, visit)
		case schedule.Loss:
			visit(mapped.Bytes(i.loss.Labels.Host()), false)
			visit(mapped.Bytes(i.loss.Split.Host()), false)
		}
		for _, d := range s.pass.walk.tasks[t.Layer][t.Stage].do {
			s.store.VisitRows(d, i.lo, i.hi, rows)
		}
		if ids := s.store.InputIDs(); s.pass.Train && Tensor(t.Stage) && ids.Len() > 0 && s.store.Network.Spec.Drops() {
			visit(mapped.Bytes(ids.Host()[i.lo:i.hi]), false)
		}
	}
}
