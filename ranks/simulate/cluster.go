package simulate

import (
	"math"
	"slices"

	"siafu/ranks/engine"
	"siafu/ranks/runfolder"
	"siafu/ranks/schedule"
)

// Cluster is the ranks on which epochs are replayed.
type Cluster struct {
	Ranks     []*Rank
	Slower    []float64 // by graph rank: factor on the time of its work; nil: 1
	Workers   int       // per rank
	Shared    int       // processors that all ranks share; 0: each worker has one
	Link      Link
	Disk      float64     // bytes per second that each rank reads; 0: fetches take the recorded time
	Copy      float64     // seconds of a worker per byte of sent or received rows
	Rates     []float64   // by graph rank, of its network card; nil: the Link's rate
	Rows      [][]float64 // that each rank (first) sends each other (second) in an exchange; nil:
	Ghosts    []float64   // by graph rank, with equally many from each owner
	Bytes     []float64   // by layer: of a row
	Weights   float64     // bytes of all weights, and of their gradients
	Servers   int         // of weights; 0: gradients are summed over the ranks
	Server    float64     // seconds that a server works for an epoch
	Staleness int         // of bounded asynchrony; below 0: synchronous
	Linger    float64     // wait budget for rows and weights of the epoch, in epochs, in bounded asynchrony
	Functions *Functions  // that do the tensor work; nil: ranks do
	Alone     bool        // workers without a task do not assist others
}

// Result is the result of a simulation.
type Result struct {
	Epoch  float64 // seconds of an epoch, the mean
	Median float64 // of the epochs
	Ranks  []Use   // of an epoch
	Bill           // of functions, in an epoch
}

// Run replays N epochs. It cycles through the recorded epochs.
func (c *Cluster) Run(epochs int) Result {
	s := &simulation{Cluster: c, epochs: epochs, exchanges: map[box]*exchange{}, ends: make([]float64, epochs)}
	s.processors = &processors{clock: &s.clock, shared: c.Shared > 0, free: c.Shared}
	s.network = newNetwork(&s.clock, c.Link.Latency, c.rates())
	s.there, s.back, s.even = c.rowPattern(false), c.rowPattern(true), even(len(c.Ranks))
	for n := range c.Ranks {
		s.crews = append(s.crews, s.newWorkerPool(n))
	}
	if c.Staleness < 0 {
		s.startSync()
	} else {
		s.startAsync()
	}
	s.run()
	return s.sum()
}

// rates returns the rates of all cards: of graph ranks, servers, bridges, and the invocation
// service.
func (c *Cluster) rates() []float64 {
	list := slices.Clone(c.Rates)
	if list == nil {
		list = slices.Repeat([]float64{c.Link.Rate}, len(c.Ranks))
	}
	others := c.Servers
	if c.Functions != nil {
		others += c.Functions.Bridges
	}
	list = append(list, slices.Repeat([]float64{c.Link.Rate}, others)...)
	return append(list, math.Inf(1))
}

// rowPattern returns the pattern of rows, or of their gradients.
func (c *Cluster) rowPattern(backward bool) *pattern {
	if c.Rows != nil {
		return listed(c.Rows, backward)
	}
	return spread(c.Ghosts, backward)
}

// simulation is a run of a Cluster.
type simulation struct {
	*Cluster
	clock
	network           *network
	processors        *processors
	there, back, even *pattern      // rows, their gradients, and sums
	crews             []*workerPool // of graph ranks
	exchanges         map[box]*exchange
	epochs            int
	ends              []float64 // by epoch: end on the last rank
	running           int       // functions
}

func (s *simulation) sum() (m Result) {
	each, spent := 1/float64(s.epochs), Spent{}
	for _, w := range s.crews {
		var u Use
		u.add(w.use, each)
		u.Span = w.last * each
		m.Ranks = append(m.Ranks, u)
		m.Epoch = max(m.Epoch, u.Span)
		spent.add(w.spent)
	}
	steps, before := []float64{}, 0.0
	for _, end := range s.ends {
		steps = append(steps, end-before)
		before = end
	}
	m.Median = runfolder.Median(steps)
	if s.Functions != nil {
		m.Bill = s.Functions.bill(spent, each)
	}
	return m
}

// pattern returns the pattern of rows, or of returned gradients.
func (s *simulation) pattern(backward bool) *pattern {
	if backward {
		return s.back
	}
	return s.there
}

// workerPool is the workers of a graph rank, and their statistics.
type workerPool struct {
	s           *simulation
	id          int
	rank        *Rank
	slowdown    float64
	free        int     // workers
	use         Use     // of all epochs
	last        float64 // end of the last epoch
	ended       float64 // end of the last task
	copyBacklog float64 // seconds of a worker for pending copies
	spent       Spent
	remote      *remote // where tensor tasks run; nil: here
	reader      *reader // of files; nil: none
	divided     []*division
}

func (s *simulation) newWorkerPool(id int) *workerPool {
	w := &workerPool{s: s, id: id, rank: s.Ranks[id], slowdown: 1, free: s.Workers}
	if s.Slower != nil {
		w.slowdown = s.Slower[id]
	}
	if s.Functions != nil {
		w.remote = s.newRemote(w)
	}
	return w
}

// flow is the work of a workerPool.
type flow interface {
	accountTime()         // called before any change of state
	idle()                // a worker has nothing to do
	done(t schedule.Task) // a task has ended
}

// start runs a task on a worker, or in a function.
func (w *workerPool) start(f flow, t schedule.Task, takes Work) {
	idle := w.gap(t.Epoch) + w.copySeconds()
	w.free--
	end := func() {
		f.accountTime()
		w.free++
		w.ended = w.s.now
		f.done(t)
	}
	if w.remote != nil && engine.Tensor(t.Stage) {
		recorded := takes.seconds()
		if hand := w.s.Functions.Hand; hand >= 0 {
			takes = Work{Serial: hand}
		}
		end = func() {
			f.accountTime()
			w.free++
			w.remote.submit(f, t, recorded)
			f.idle()
		}
	}
	k := -1
	if w.reader != nil {
		k = w.reader.FetchOf(t)
	}
	if k < 0 {
		w.divide(f, takes, idle, end)
		return
	}
	w.work(0, idle, func() { w.reader.await(k, func() { w.divide(f, takes, 0, end) }) })
}

// addCopied counts sent or received bytes, which workers copy between two tasks or while idle. An
// idle worker needs a processor to copy if ranks share processors.
func (w *workerPool) addCopied(bytes float64) {
	takes := bytes * w.s.Copy
	if w.s.processors.shared && w.free == w.s.Workers && takes > 0 {
		w.s.processors.run(takes, func() {})
		return
	}
	w.copyBacklog += takes
}

// copySeconds returns the time that a worker copies bytes before its next task.
func (w *workerPool) copySeconds() float64 {
	if w.free == w.s.Workers {
		w.copyBacklog = max(0, w.copyBacklog-(w.s.now-w.ended))
	}
	owes := w.copyBacklog
	w.copyBacklog = 0
	return owes
}

// gap returns the time of a worker between two tasks.
func (w *workerPool) gap(epoch int) float64 { return w.rank.Epochs[epoch%len(w.rank.Epochs)].Gap }

// work occupies a worker for some seconds, followed by idle seconds.
func (w *workerPool) work(seconds, idle float64, then func()) {
	seconds *= w.slowdown
	w.use.Busy += seconds / float64(w.s.Workers)
	w.s.processors.run(seconds+idle*w.slowdown, then)
}
