package ranks

import (
	"bytes"
	"encoding/gob"
	"errors"
	"math"
	"os"
	"slices"
	"sync"

	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/signals"
	"siafu/ranks/checkpoint"
	"siafu/ranks/engine"
	"siafu/ranks/inject"
	"siafu/ranks/world"
	"siafu/ranks/world/parts"
)

// viewSequence is a training run on one rank, through its views. It implements
// parts.ElasticJob. If views are replaceable, each member runs as if resumed from a checkpoint
// that is in memory: after each epoch rank 0 stores the state of the run, and each part its own
// state. The run leaves a view
//
//   - after an epoch, if a rank has requested another view and all parts have agreed
//     (engine.Views), or
//   - at any point, if the members of a rank were ended (parts.End).
//
// Rank 0 has part 0, and with it the run folder, in all views.
//
// Design note: a server stores nothing. Rank 0 requests its state at the beginning of an
// epoch, as for a checkpoint. So there is one state to continue from, and one way to do so.
type viewSequence struct {
	cfg         Config
	data        string
	kind        string // of world: mpi or in-process
	limits      world.Limits
	watcher     *signals.Watcher
	out         IO
	replaceable bool

	files files // opened by rank 0, once for all views; zero on other ranks

	mu       sync.Mutex
	members  []*member            // in the current view
	ended    bool                 // the current view ends before the run
	nextView *world.View          // proposed by this rank
	states   map[int][]partMemory // of the parts here, by member: states of the last two epochs, the newer one last
}

// partMemory is the state of a part after an epoch. No part ends an epoch before all parts have
// begun it, so two parts of a view differ by at most one epoch. They have at least one stored epoch
// in common.
type partMemory struct {
	Epoch int
	Own   engine.PartState
	state *checkpoint.State // state of the run, on rank 0; never sent
}

// newViewSequence makes a run. Only injected faults replace a view.
func newViewSequence(c Config, data string, limits world.Limits, watcher *signals.Watcher, out IO) *viewSequence {
	return &viewSequence{
		cfg: c, data: data, limits: limits, watcher: watcher, out: out,
		replaceable: inject.Replaces(os.Getenv), states: map[int][]partMemory{},
	}
}

// run trains in the view v, and in the views that replace it. w is nil without a launcher.
func (c *viewSequence) run(w world.Comm, v world.View) error {
	c.kind = kindOf(w)
	if c.replaceable {
		return parts.RunViews(w, v, c)
	}
	defer c.Ended(v)
	return runParts(w, v, func(w world.Comm) error { return c.RunMember(w, v) })
}

// RunMember implements parts.ElasticJob.
func (c *viewSequence) RunMember(w world.Comm, v world.View) (err error) {
	defer mapped.Catch(&err)
	r := newMember(c.cfg, c.data, v, w, c.kind, c.out)
	r.limits, r.watcher, r.views = limitsOf(v, c.limits), c.watcher, c
	w.SetLimits(r.limits)
	c.mu.Lock()
	c.members = append(c.members, r)
	c.mu.Unlock()
	err = r.train()
	if ended := (*world.EndedError)(nil); errors.As(err, &ended) {
		c.markEnded()
	}
	return err
}

// markEnded records that the view ends before the run.
func (c *viewSequence) markEnded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

func (c *viewSequence) requestView(v world.View) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextView = &v
}

// Ended implements parts.ElasticJob.
func (c *viewSequence) Ended(world.View) *world.View {
	for _, r := range c.members {
		r.close()
	}
	next := c.nextView
	if !c.ended {
		next = nil // the run ended before the view could be replaced
	}
	c.members, c.ended, c.nextView = nil, false, nil
	return next
}

// Pack implements parts.ElasticJob.
func (c *viewSequence) Pack(part int) []byte {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(c.states[part]); err != nil {
		panic("ranks: cannot encode a part's state: " + err.Error())
	}
	delete(c.states, part)
	return b.Bytes()
}

// Unpack implements parts.ElasticJob.
func (c *viewSequence) Unpack(part int, state []byte) error {
	var list []partMemory
	err := gob.NewDecoder(bytes.NewReader(state)).Decode(&list)
	c.states[part] = list
	return err
}

// close closes everything that outlives the views.
func (c *viewSequence) close() { c.files.reporter.close() }

// storedState returns the state of a part after an epoch, or its newest one if epoch is later;
// nil if it has none.
func (c *viewSequence) storedState(part, epoch int) *partMemory {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range slices.Backward(c.states[part]) {
		if m.Epoch <= epoch {
			return &m
		}
	}
	return nil
}

// attachViews sets the actions of injected faults that replace the view. It returns a fault if the
// run cannot change its view.
func (r *member) attachViews() error {
	r.fault.Views(
		func() { r.views.requestView(r.viewWithoutRank()); parts.End(r.everyone) },
		func() { r.views.requestView(r.viewWithPartMoved()) },
	)
	if r.rank == 0 && r.view.Rank(0) != 0 {
		return fault.New(fault.Runtime, "view", "", "view %d has part 0 on rank %d, but rank 0 must carry it, because rank 0 writes the run folder", r.view.Number, r.view.Rank(0))
	}
	flag := ""
	switch {
	case !r.views.replaceable:
		return nil
	case r.cfg.Asynchronous():
		flag = "--mode=" + r.cfg.Mode
	case r.cfg.Trace != "":
		flag = "--trace"
	default:
		return nil
	}
	return fault.New(fault.Usage, "train", "", "%s in a run that changes its view", flag).Then("leave it out")
}

// viewWithoutRank returns the next view after the members of this rank were ended: its parts
// move to other ranks. Rank 0 and servers restart in place.
func (r *member) viewWithoutRank() world.View {
	if at := r.view.Rank(r.rank); at > 0 && !r.isServer() {
		return r.view.WithoutRank(at)
	}
	return r.view.Restart()
}

// viewWithPartMoved returns the view with this part on the next graph rank, or in place if it
// cannot move.
func (r *member) viewWithPartMoved() world.View {
	if r.rank == 0 || r.isServer() {
		return r.view.Restart()
	}
	return r.view.Move(r.rank, (r.view.Rank(r.rank)+1)%r.view.Ranks)
}

// agreeOnState finds the state to continue from in a new view: the newest epoch that all parts
// have stored, or the state that the run began from. Collective over the world.
func (r *opened) agreeOnState() error {
	if r.view.Number == 0 {
		return nil
	}
	newest := []int64{math.MaxInt64}
	if !r.isServer() {
		newest[0] = -1
		if m := r.views.storedState(r.rank, math.MaxInt); m != nil {
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
func (r *opened) restoreState(epoch int) error {
	if epoch < 0 || r.isServer() {
		return nil
	}
	m := r.views.storedState(r.rank, epoch)
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
func (r *member) ViewRequested() bool {
	r.views.mu.Lock()
	defer r.views.mu.Unlock()
	return r.views.nextView != nil
}

// StoreState implements engine.Views.
func (r *joined) StoreState(s engine.Snapshot, own engine.PartState) {
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
	c := r.views
	c.mu.Lock()
	defer c.mu.Unlock()
	list := append(c.states[r.rank], m)
	c.states[r.rank] = list[max(len(list)-2, 0):]
}

// Replaced implements engine.Views.
func (r *member) Replaced() { r.views.markEnded() }

// viewEnds reports whether the view, but not the run, ends here. Collective over the world.
func (r *member) viewEnds() (bool, error) {
	if !r.views.replaceable {
		return false, nil
	}
	ended := []int64{0}
	if !r.isServer() {
		r.views.mu.Lock()
		if r.views.ended {
			ended[0] = 1
		}
		r.views.mu.Unlock()
	}
	err := world.SumInt64s(r.world, ended)
	return ended[0] > 0, err
}
