package simulate

import (
	"time"

	"siafu/lambda/bill"
	"siafu/lambda/local"
	"siafu/lambda/pool"
	"siafu/ranks/schedule"
)

// Functions do the tensor work of all ranks in invocations (Dorylus, OSDI'21, §3 and §6). A
// pool.Pool schedules each rank's invocations, as in a run.
type Functions struct {
	AtOnce   int     // maximal concurrent invocations of a rank
	Bridges  int     // bridges for tasks and results; 0: each rank invokes directly
	Memory   int     // MB
	Near     bool    // functions run on the ranks' hosts, and their bytes use no card
	Overhead float64 // seconds of an invocation in addition to work and bytes; below 0 if they overlap
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
func (f *Functions) bill(s Spent, share float64) (b Bill) {
	all := bill.Functions{Tariff: f.Tariff, Memory: f.Memory, Usage: s.Usage}
	for class, u := range s.Usage {
		gbs, _ := all.GBSeconds(bill.Class(class)).Float64()
		b.Invocations += share * float64(u.Invocations)
		b.GBSeconds += share * gbs
	}
	usd, _ := all.Total().Float64()
	b.USD, b.To, b.Back = share*usd, share*s.To, share*s.Back
	return b
}

// remote is a rank's invocations.
type remote struct {
	*workerPool
	pool *pool.Pool[taskCall]
	open map[taskCall]*pendingTask
	warm int // idle sandboxes
	due  time.Duration
}

// taskCall names a tensor task.
type taskCall struct {
	stage                  schedule.Stage
	epoch, layer, interval int
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
	return &remote{workerPool: w, pool: pool.New[taskCall](settings), open: map[taskCall]*pendingTask{}, due: -1}
}

// handoverSeconds returns the time of a worker to hand over a task.
func (r *remote) handoverSeconds(recorded float64) float64 {
	if r.s.Functions.Hand < 0 {
		return recorded
	}
	return r.s.Functions.Hand
}

func (r *remote) now() time.Duration { return time.Duration(r.s.now * float64(time.Second)) }

// submit hands over a task.
func (r *remote) submit(f flow, t schedule.Task, recorded float64) {
	name := taskCall{t.Stage, t.Epoch, t.Layer, t.Interval}
	r.open[name] = &pendingTask{f, t, r.s.Functions.Of(r.id, t, recorded)}
	r.applyOrders(r.pool.Submit(r.now(), name, int(t.Stage)<<8|t.Layer))
}

// applyOrders executes the pool's orders.
func (r *remote) applyOrders(orders []pool.Order[taskCall]) {
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
func (r *remote) invoke(name taskCall, attempt int) {
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
		r.s.at(r.s.now+starts+max(f.Overhead+works, 0), func() {
			r.s.running--
			r.warm++
			r.spent.Back += c.Back
			r.carry(c.Back, false, func() { r.result(name, attempt, starts, works) })
		})
	})
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
func (r *remote) result(name taskCall, attempt int, starts, works float64) {
	first, orders := r.pool.Result(r.now(), name, attempt)
	class := bill.Wasted
	switch {
	case first && attempt == 1:
		class = bill.Counted
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
func (r *remote) end(name taskCall) {
	h := r.open[name]
	delete(r.open, name)
	h.f.accountTime()
	h.f.done(h.t)
}
