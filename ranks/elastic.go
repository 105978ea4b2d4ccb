package ranks

import (
	"bytes"
	"encoding/gob"
	"errors"
	"math"
	"slices"
	"sync"

	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/signals"
	"siafu/ranks/checkpoint"
	"siafu/ranks/engine"
	"siafu/ranks/world"
	"siafu/ranks/world/parts"
)

// elasticRun is a rank's part of a run whose view may be replaced. It implements
// parts.ElasticJob. Each member runs as if resumed from a checkpoint that is in memory: after
// each epoch rank 0 stores the state of the run, and each part its own state. A run uses
// several views, one after another, and leaves a view
//
//   - after an epoch, where a rank wanted another view and all parts have agreed
//     (engine.Views), or
//   - anywhere, where the members of a rank were ended (parts.End).
//
// Rank 0 has part 0, and with it the run folder, in all views.
//
// Design note: a server stores nothing. Rank 0 requests its state at the beginning of an
// epoch, as for a checkpoint. So there is one state to continue from, and one way to do so.
type elasticRun struct {
	cfg     Config
	data    string
	kind    string // of world: mpi or in-process
	limits  world.Limits
	watcher *signals.Watcher
	out     IO

	// Opened by rank 0, once for all views; nil on other ranks.
	reporter *reporter
	opening  opening
	state    *checkpoint.State // that the run began from, nil for a new run
	shards   string            // the folder of

	mu       sync.Mutex
	runs     []*run               // of members in the current view
	ended    bool                 // the current view ends before the run
	nextView *world.View          // proposed by this rank
	states   map[int][]partMemory // of the parts here, by member: states of the last two epochs, the newer one last
}

// partMemory is the state of a part after an epoch. Two parts of a view differ by at most one
// epoch, since none ends an epoch before all have begun it. So they have at least one stored
// epoch in common.
type partMemory struct {
	Epoch int
	Own   engine.PartState
	state *checkpoint.State // the run's, on rank 0; never sent
}

// RunMember implements parts.ElasticJob.
func (c *elasticRun) RunMember(w world.Comm, v world.View) (err error) {
	defer mapped.Catch(&err)
	limits := c.limits
	if !v.Flat() {
		limits.Name = v.Name
	}
	w.SetLimits(limits)
	r := &run{cfg: c.cfg, data: c.data, kind: c.kind, world: w, limits: limits, watcher: c.watcher, arena: mapped.NewArena(), gpus: gpusHere(), elastic: c}
	r.view, r.end = v, func() { parts.End(w) }
	c.mu.Lock()
	c.runs = append(c.runs, r)
	c.mu.Unlock()
	err = r.runToEnd(c.out)
	if ended := (*world.EndedError)(nil); errors.As(err, &ended) {
		c.markEnded()
	}
	return err
}

// markEnded records that the view ends before the run.
func (c *elasticRun) markEnded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// requestView requests the next view.
func (c *elasticRun) requestView(v world.View) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextView = &v
}

// Ended implements parts.ElasticJob.
func (c *elasticRun) Ended(world.View) *world.View {
	for _, r := range c.runs {
		r.close()
	}
	next := c.nextView
	if !c.ended {
		next = nil // the run ended before the view could be replaced
	}
	c.runs, c.ended, c.nextView = nil, false, nil
	return next
}

// Pack implements parts.ElasticJob.
func (c *elasticRun) Pack(part int) []byte {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(c.states[part]); err != nil {
		panic("ranks: cannot encode a part's state: " + err.Error())
	}
	delete(c.states, part)
	return b.Bytes()
}

// Unpack implements parts.ElasticJob.
func (c *elasticRun) Unpack(part int, luggage []byte) error {
	var list []partMemory
	err := gob.NewDecoder(bytes.NewReader(luggage)).Decode(&list)
	c.states[part] = list
	return err
}

// close closes everything that outlives the views.
func (c *elasticRun) close() { c.reporter.close() }

// storeState stores the state of a part.
func (c *elasticRun) storeState(part int, m partMemory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := append(c.states[part], m)
	c.states[part] = list[max(len(list)-2, 0):]
}

// storedState returns the state of a part after an epoch, or its newest one if epoch is later;
// nil if it has none.
func (c *elasticRun) storedState(part, epoch int) *partMemory {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range slices.Backward(c.states[part]) {
		if m.Epoch <= epoch {
			return &m
		}
	}
	return nil
}

// attach connects a run, after assign, to its elasticRun, if it has one.
func (c *elasticRun) attach(r *run) error {
	if c == nil {
		return nil
	}
	r.fault.Views(
		func() { c.requestView(r.viewWithoutRank()); r.end() },
		func() { c.requestView(r.viewWithPartMoved()) },
	)
	if r.rank == 0 && r.view.Rank(0) != 0 {
		return fault.New(fault.Runtime, "view", "", "view %d has part 0 on rank %d, but rank 0 must carry it, because rank 0 writes the run folder", r.view.Number, r.view.Rank(0))
	}
	flag := ""
	switch {
	case r.cfg.Asynchronous():
		flag = "--mode=" + r.cfg.Mode
	case r.cfg.Trace != "":
		flag = "--trace"
	default:
		return nil
	}
	return fault.New(fault.Usage, "train", "", "%s in a run that changes its view", flag).Then("leave it out")
}

// restoreOpened restores on rank 0 the files opened in a previous view, and reports whether
// there was one.
func (c *elasticRun) restoreOpened(r *run) bool {
	if c == nil || c.reporter == nil {
		return false
	}
	r.reporter, r.opening, r.state, r.shards = c.reporter, c.opening, c.state, c.shards
	return true
}

// saveOpened stores the files that rank 0 has opened.
func (c *elasticRun) saveOpened(r *run) {
	if c != nil {
		c.reporter, c.opening, c.state, c.shards = r.reporter, r.opening, r.state, r.shards
	}
}

// viewWithoutRank returns the next view after the members of this rank were ended: its parts
// move to other ranks. Rank 0 and servers restart in place.
func (r *run) viewWithoutRank() world.View {
	if at := r.view.Rank(r.rank); at > 0 && !r.isServer() {
		return r.view.WithoutRank(at)
	}
	return r.view.Restart()
}

// viewWithPartMoved returns the view with this part on the next graph rank, or in place if it
// cannot move.
func (r *run) viewWithPartMoved() world.View {
	if r.rank == 0 || r.isServer() {
		return r.view.Restart()
	}
	return r.view.Move(r.rank, (r.view.Rank(r.rank)+1)%r.view.Ranks)
}

// agreeOnState finds the state to continue from in a new view: the newest epoch that all parts
// have stored, or the state that the run began from. Collective over the world.
func (r *run) agreeOnState() error {
	if r.view.Number == 0 {
		return nil
	}
	newest := []int64{math.MaxInt64}
	if !r.isServer() {
		newest[0] = -1
		if m := r.elastic.storedState(r.rank, math.MaxInt); m != nil {
			newest[0] = int64(m.Epoch)
		}
	}
	if err := world.MinInt64s(r.world, newest); err != nil {
		return err
	}
	err := agree(r.world, r.restoreState(int(newest[0])))
	if err == nil {
		r.reporter.log("view number=%d carriers=%v after_epoch=%d", r.view.Number, r.view.Carrier, max(newest[0], 0))
	}
	return err
}

// restoreState restores the state of this part after an epoch. Before the first stored epoch,
// and on servers, there is none.
func (r *run) restoreState(epoch int) error {
	if epoch < 0 || r.isServer() {
		return nil
	}
	m := r.elastic.storedState(r.rank, epoch)
	if m == nil || m.Epoch != epoch {
		return fault.New(fault.Runtime, "train", "", "view %d cannot continue: no state is stored for epoch %d", r.view.Number, epoch)
	}
	r.partState = m.Own
	if m.state != nil {
		r.state = m.state
	}
	return nil
}

// ViewRequested implements engine.Views.
func (r *run) ViewRequested() bool {
	r.elastic.mu.Lock()
	defer r.elastic.mu.Unlock()
	return r.elastic.nextView != nil
}

// StoreState implements engine.Views.
func (r *run) StoreState(s engine.Snapshot, own engine.PartState) {
	m := partMemory{Epoch: s.Epoch, Own: own}
	if r.rank == 0 {
		s.Weights = slices.Clone(s.Weights)
		for k := range s.Slots {
			s.Slots[k] = slices.Clone(s.Slots[k])
		}
		h := *s.History
		h.Best = slices.Clone(h.Best)
		s.History = &h
		state := r.stateOf(s)
		m.state = &state
	}
	r.elastic.storeState(r.rank, m)
}

// Replaced implements engine.Views.
func (r *run) Replaced() { r.elastic.markEnded() }

// viewEnds reports whether the view, but not the run, ends here. Collective over the world.
func (r *run) viewEnds() (bool, error) {
	if r.elastic == nil {
		return false, nil
	}
	ended := []int64{0}
	if !r.isServer() {
		r.elastic.mu.Lock()
		if r.elastic.ended {
			ended[0] = 1
		}
		r.elastic.mu.Unlock()
	}
	err := world.SumInt64s(r.world, ended)
	return ended[0] > 0, err
}
