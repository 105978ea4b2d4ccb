package simulate

import (
	"cmp"
	"math"
	"time"

	"siafu/internal/fault"
	"siafu/lambda/bill"
	"siafu/lambda/local"
	"siafu/lambda/pool"
	"siafu/ranks/plan"
	"siafu/ranks/schedule"
)

// Functions do the tensor work of all ranks in invocations (Dorylus, OSDI'21, §3 and §6). A
// pool.Pool schedules each rank's invocations, as in a run.
type Functions struct {
	AtOnce  int  // maximal concurrent invocations of a rank
	Bridges int  // bridges for tasks and results; 0: each rank invokes directly
	Memory  int  // MB
	Near    bool // functions run on the ranks' hosts, and their bytes use no card
	// seconds of an invocation in addition to work and bytes, of a processor if Near and processors are
	// shared; below 0 if they overlap
	Overhead float64
	Cold     float64 // seconds more of one that needs a new sandbox
	Rate     float64 // bytes per second of a function, in each direction; 0: local.Bandwidth
	Hand     float64 // seconds of a worker to hand over a task; below 0: as recorded
	Tariff   bill.Tariff
	Of       func(rank int, t schedule.Task, recorded float64) Call // call of a task with the given recorded seconds
}

// Call is the size and work of a task in a function.
type Call struct{ To, Back, Work float64 } // bytes of it and of its result; seconds

// Spent is the resource usage of the invocations of a rank.
type Spent struct {
	Usage    bill.Usage
	To, Back float64 // bytes
}

func (s *Spent) add(o Spent) {
	s.Usage.Add(o.Usage)
	s.To += o.To
	s.Back += o.Back
}

// Bill is the cost of invocations.
type Bill struct {
	Invocations, GBSeconds, USD float64
	To, Back                    float64 // bytes
}

// bill returns a fraction of the cost.
func (f *Functions) bill(s Spent, share float64) Bill {
	all := bill.Functions{Tariff: f.Tariff, Memory: f.Memory, Usage: s.Usage}
	invocations := int64(0)
	for _, u := range s.Usage {
		invocations += u.Invocations
	}
	return Bill{share * float64(invocations), share * all.GBSeconds(), share * all.USD(), share * s.To, share * s.Back}
}

// remote is a rank's invocations.
type remote struct {
	*workerPool
	pool *pool.Pool[epochTask]
	open map[epochTask]*pendingTask
	warm int // idle sandboxes
	due  time.Duration
}

// pendingTask is a task that a worker has handed over.
type pendingTask struct {
	f    flow
	t    schedule.Task
	call Call
}

func (s *simulation) newRemote(w *workerPool) *remote {
	settings := pool.Defaults()
	settings.Limit, settings.Seed = s.Functions.AtOnce, uint64(w.id)
	return &remote{workerPool: w, pool: pool.New[epochTask](settings), open: map[epochTask]*pendingTask{}, due: -1}
}

func (r *remote) now() time.Duration { return time.Duration(r.s.now * float64(time.Second)) }

// submit hands over a task.
func (r *remote) submit(f flow, t schedule.Task, recorded float64) {
	name := epochTask{keyIn(t), t.Epoch}
	r.open[name] = &pendingTask{f, t, r.s.Functions.Of(r.id, t, recorded)}
	r.applyOrders(r.pool.Submit(r.now(), name, int(t.Stage)<<8|t.Layer))
}

// applyOrders executes the pool's orders.
func (r *remote) applyOrders(orders []pool.Order[epochTask]) {
	for _, o := range orders {
		switch o.Do {
		case pool.Invoke:
			r.invoke(o.Task, o.Attempt)
		case pool.Local:
			r.s.processors.run(r.open[o.Task].call.Work, func() { r.end(o.Task) })
		}
	}
	at, ok := r.pool.Next()
	if !ok || r.due >= 0 && r.due <= at {
		return
	}
	r.due = at
	r.s.at(max(at.Seconds(), r.s.now), func() {
		if r.due == at {
			r.due = -1
			r.applyOrders(r.pool.Tick(max(at, r.now())))
		}
	})
}

// invoke simulates an attempt at a task: its bytes are sent to the function, which works, and
// the result's bytes are returned.
func (r *remote) invoke(name epochTask, attempt int) {
	f := r.s.Functions
	c := r.open[name].call
	r.spent.To += c.To
	starts := 0.0
	if r.warm > 0 {
		r.warm--
	} else {
		starts = f.Cold
	}
	r.s.running++
	r.carry(c.To, true, func() {
		rate := f.Rate
		if rate == 0 {
			rate = local.Bandwidth(r.s.running) / 8
		}
		works := c.Work + (c.To+c.Back)/rate
		r.compute(starts+max(f.Overhead+works, 0), func() {
			r.s.running--
			r.warm++
			r.spent.Back += c.Back
			r.carry(c.Back, false, func() { r.result(name, attempt, starts, works) })
		})
	})
}

// slice is the time for which a function on a shared processor keeps it, in seconds.
const slice = 0.5e-3

// compute calls then after the seconds that a function takes. Functions on the ranks' hosts share
// the processors of the ranks.
func (r *remote) compute(seconds float64, then func()) {
	s := r.s
	switch {
	case !s.Functions.Near || !s.processors.shared:
		s.at(s.now+seconds, then)
	case seconds <= slice:
		s.processors.run(seconds, then)
	default:
		s.processors.run(slice, func() {
			s.at(s.now, func() { r.compute(seconds-slice, then) }) // after those that wait for a processor
		})
	}
}

// carry transfers bytes to the service or back, through the rank's bridge if it has one.
func (r *remote) carry(bytes float64, there bool, then func()) {
	f, n := r.s.Functions, len(r.s.network.rate)
	from, to := r.id, n-1
	if f.Near {
		then()
		return
	}
	path := []int{from, to}
	if f.Bridges > 0 {
		path = []int{from, n - 1 - f.Bridges + r.id%f.Bridges, to}
	}
	var hop func(k int)
	hop = func(k int) {
		if k == len(path)-1 {
			then()
			return
		}
		a, b := path[k], path[k+1]
		if !there {
			a, b = path[len(path)-1-k], path[len(path)-2-k]
		}
		r.s.network.send(a, b, bytes, func() { hop(k + 1) })
	}
	hop(0)
}

// result handles the result of an attempt.
func (r *remote) result(name epochTask, attempt int, starts, works float64) {
	first, orders := r.pool.Result(r.now(), name, attempt)
	class := bill.Wasted
	switch {
	case first && attempt == 1:
		class = bill.FirstUsed
	case first:
		class = bill.Retried
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	r.spent.Usage.Take(r.s.Functions.Tariff, class, seconds(starts), seconds(works))
	r.applyOrders(orders)
	if first {
		r.end(name)
	}
}

// end handles the end of a task.
func (r *remote) end(name epochTask) {
	h := r.open[name]
	delete(r.open, name)
	h.f.accountTime()
	h.f.done(h.t)
}

// lambda is the name of tensor work in functions.
const lambda = "lambda"

// defaultHandover is the assumed time of a worker to hand over a task if none was recorded, in
// seconds: a copy of 100 KB.
const defaultHandover = 20e-6

// functions applies the flags of functions.
func (o *Options) functions(p *recordedRun, c *Cluster) error {
	in := cmp.Or(o.Tensor, p.tensor)
	switch {
	case in != lambda && p.tensor == lambda:
		return fault.New(fault.Config, op, o.Run,
			"--tensor %s for a run with --tensor lambda, whose timeline lacks the times of tensor tasks", in).
			Then("record a run with --tensor cpu")
	case in != lambda:
		return nil
	case o.FunctionOptions.Functions < 0 || o.Bridges < 0 || o.Bridges > mostRanks || o.ColdStart < 0 ||
		o.LambdaMemory < 128 || o.LambdaMemory > 10240:
		return fault.New(fault.Usage, op, "", "%d functions a rank over %d bridges, with %d MB and %v to start",
			o.FunctionOptions.Functions, o.Bridges, o.LambdaMemory, o.ColdStart).
			Then("set 128 to 10240 MB of memory, at most %d bridges, and no negative value", mostRanks)
	}
	f := &Functions{
		AtOnce: o.FunctionOptions.Functions, Bridges: o.Bridges, Memory: o.LambdaMemory, Overhead: local.Overhead,
		Cold: o.ColdStart.Seconds(), Hand: defaultHandover,
	}
	if f.AtOnce == 0 {
		f.AtOnce = max(cmp.Or(p.atOnce, min(c.Ranks[0].Outline.Intervals, pool.MaxInitial)), 1)
	}
	var err error
	if f.Tariff, err = bill.Architecture(o.LambdaTariff); err != nil {
		return err
	}
	if o.FunctionRate != "" {
		if f.Rate, err = plan.Bandwidth(o.FunctionRate); err != nil {
			return err
		}
	}
	if p.tensor == lambda {
		o.asRecorded(p, c, f)
	} else {
		o.fromCPU(p, c, f)
	}
	if o.Invocation >= 0 {
		f.Overhead = o.Invocation.Seconds()
	}
	c.Functions = f
	return nil
}

// asRecorded sets invocations to the recorded run's mean times and bytes.
func (o *Options) asRecorded(p *recordedRun, c *Cluster, f *Functions) {
	f.Hand, f.Cold, f.Near = -1, 0, p.near
	if f.Rate == 0 {
		f.Rate = unlimitedRate
	}
	f.Of = func(rank int, _ schedule.Task, _ float64) Call {
		by := c.Ranks[rank].vertices()
		return Call{p.call.To * by, p.call.Back * by, p.call.Work * by}
	}
	f.Overhead = p.overhead(c, f)
}

// overhead returns the seconds of an invocation in addition to its work with which a replay
// has the recorded duration: the round trip to a function, less charged time that caused no
// wait.
func (p *recordedRun) overhead(c *Cluster, f *Functions) float64 {
	was, trial := *c, *f
	was.Ranks, was.Slower, was.Rates, was.Rows, was.Ghosts, was.Copy = p.Ranks, nil, nil, nil, nil, 0
	was.Workers, was.Servers, was.Functions, was.Link = p.Ranks[0].Workers, p.Servers, &trial, Link{Rate: math.Inf(1)}
	if was.Staleness = -1; p.paced() {
		was.Staleness, was.Linger = p.staleness, p.linger
	}
	was.Rows = p.rows
	for _, k := range p.counts {
		was.Ghosts = append(was.Ghosts, k.Ghosts)
	}
	trial.Of = func(int, schedule.Task, float64) Call { return p.call }
	least, most := -p.call.Work, p.median
	for range 20 {
		trial.Overhead = (least + most) / 2
		if was.Run(len(p.Epochs)).Median > p.median {
			most = trial.Overhead
		} else {
			least = trial.Overhead
		}
	}
	return trial.Overhead
}

// unlimitedRate is a rate in bytes per second above any link's.
const unlimitedRate = 1e18

// fromCPU derives invocation times from a worker's times and their fraction of a processor.
// Their bytes are those of uncoded matrices: input of the first stage, output of the last one,
// and weights or their gradients.
func (o *Options) fromCPU(p *recordedRun, c *Cluster, f *Functions) {
	share := min(local.VCPU(f.Memory), 1)
	var recorded, ranks []*Rank
	for _, k := range p.Ranks {
		recorded = append(recorded, k.recut(true, k.Outline.Intervals))
	}
	vertices := make([]float64, len(c.Ranks))
	for n, k := range c.Ranks {
		other := *recorded[n%len(recorded)]
		other.scale = k.scale
		ranks = append(ranks, &other)
		vertices[n] = p.counts[n%len(p.counts)].Vertices * k.vertices() / float64(max(k.Outline.Intervals, 1))
	}
	c.Ranks = ranks
	f.Of = func(rank int, t schedule.Task, takes float64) Call {
		in, out := 4*vertices[rank]*p.dims[t.Layer], 4*vertices[rank]*p.dims[t.Layer+1]
		call := Call{in + c.Weights, out, takes / share}
		if t.Stage >= schedule.ApplyBackward {
			call.To, call.Back = in+out, in+c.Weights
		}
		return call
	}
}

// vertices returns the ratio of its vertices to the recorded ones.
func (k *Rank) vertices() float64 {
	if k.scale == nil {
		return 1
	}
	return k.scale.Vertices
}
