package ranks

import (
	"bytes"
	"encoding/gob"
	"errors"
	"math"
	"slices"
	"sync"

	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/ranks/checkpoint"
	"siafu/ranks/engine"
	"siafu/ranks/signals"
	"siafu/ranks/world"
	"siafu/ranks/world/parts"
)

// course is what a rank does in a run whose view may be replaced: it implements
// parts.Course. Each member lives as in a run that continues from a checkpoint, with
// the checkpoint in memory: after each epoch rank 0 keeps the state of the run, and
// a part what it alone knows. A run lives in the views of its course, one after
// another, and leaves them
//
//   - after an epoch, where a rank wanted another view and all parts have agreed
//     (engine.Views), or
//   - anywhere, where the members of a rank were ended (parts.End).
//
// Rank 0 carries part 0, and with it the run folder, in all views.
//
// Design note: a server keeps nothing. What it knows at the beginning of an epoch
// rank 0 asks it for, as for a checkpoint; so there is one state that can be gone on
// from, whoever has held it, and one way of doing so.
type course struct {
	cfg     Config
	data    string
	kind    string // of world: mpi or in-process
	limits  world.Limits
	watcher *signals.Watcher
	out     IO

	// What rank 0 has opened, once and for all views; nil on other ranks.
	reporter *reporter
	opening  opening
	state    *checkpoint.State // that the run began from, nil: from nothing
	shards   string            // the folder of

	mu     sync.Mutex
	lives  []*run           // of members in the view under way
	ended  bool             // that view ends before the run does
	wanted *world.View      // that this rank would have follow it
	kept   map[int][]memory // of the parts here, by member: those of the last two epochs, the newer one last
}

// memory is what a part continues from after an epoch. Two parts of a view differ by
// one epoch at the most, since none ends an epoch before all have begun to: they have
// at least one epoch in common.
type memory struct {
	Epoch int
	Own   engine.Own
	state *checkpoint.State // the run's, on rank 0; it does not travel
}

// Live implements parts.Course.
func (c *course) Live(w world.Comm, v world.View) (err error) {
	defer mapped.Catch(&err)
	limits := c.limits
	if !v.Flat() {
		limits.Name = v.Name
	}
	w.SetLimits(limits)
	r := &run{cfg: c.cfg, data: c.data, kind: c.kind, world: w, limits: limits, watcher: c.watcher, arena: mapped.NewArena(), gpus: gpusHere(), course: c}
	r.view, r.end = v, func() { parts.End(w) }
	c.mu.Lock()
	c.lives = append(c.lives, r)
	c.mu.Unlock()
	err = r.whole(c.out)
	if ended := (*world.EndedError)(nil); errors.As(err, &ended) {
		c.over()
	}
	return err
}

// over notes that the view ends before the run does.
func (c *course) over() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// want asks for a view that follows the one under way.
func (c *course) want(v world.View) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = &v
}

// Ended implements parts.Course.
func (c *course) Ended(world.View) *world.View {
	for _, r := range c.lives {
		r.close()
	}
	next := c.wanted
	if !c.ended {
		next = nil // the run has come to its end before it could be met
	}
	c.lives, c.ended, c.wanted = nil, false, nil
	return next
}

// Pack implements parts.Course.
func (c *course) Pack(part int) []byte {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(c.kept[part]); err != nil {
		panic("ranks: cannot encode a part's state: " + err.Error())
	}
	delete(c.kept, part)
	return b.Bytes()
}

// Unpack implements parts.Course.
func (c *course) Unpack(part int, luggage []byte) error {
	var list []memory
	err := gob.NewDecoder(bytes.NewReader(luggage)).Decode(&list)
	c.kept[part] = list
	return err
}

// close ends what has outlived the views.
func (c *course) close() { c.reporter.close() }

// keep takes the memory of a part.
func (c *course) keep(part int, m memory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := append(c.kept[part], m)
	c.kept[part] = list[max(len(list)-2, 0):]
}

// recall is the memory of a part after an epoch, or its newest where epoch is beyond
// that; nil where it has none.
func (c *course) recall(part, epoch int) *memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range slices.Backward(c.kept[part]) {
		if m.Epoch <= epoch {
			return &m
		}
	}
	return nil
}

// begin fits a run that has been assigned into its course, if it has one.
func (c *course) begin(r *run) error {
	if c == nil {
		return nil
	}
	r.fault.Views(
		func() { c.want(r.without()); r.end() },
		func() { c.want(r.elsewhere()) },
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

// reopens takes up on rank 0 what a view before has opened, and reports whether any has.
func (c *course) reopens(r *run) bool {
	if c == nil || c.reporter == nil {
		return false
	}
	r.reporter, r.opening, r.state, r.shards = c.reporter, c.opening, c.state, c.shards
	return true
}

// opened takes note of what rank 0 has opened.
func (c *course) opened(r *run) {
	if c != nil {
		c.reporter, c.opening, c.state, c.shards = r.reporter, r.opening, r.state, r.shards
	}
}

// without is the view that follows where the members of this rank were ended: its
// parts go to other ranks. Rank 0 and servers begin again where they are.
func (r *run) without() world.View {
	if at := r.view.Rank(r.rank); at > 0 && !r.isServer() {
		return r.view.Without(at)
	}
	return r.view.Again()
}

// elsewhere is the view in which this part is on the next graph rank, and where it is
// if it cannot leave that.
func (r *run) elsewhere() world.View {
	if r.rank == 0 || r.isServer() {
		return r.view.Again()
	}
	return r.view.Move(r.rank, (r.view.Rank(r.rank)+1)%r.view.Ranks)
}

// goOn finds what the members continue from in a view that has followed another one: the
// newest epoch that all parts have kept, or what the run began from. Collective over
// the world.
func (r *run) goOn() error {
	if r.view.Number == 0 {
		return nil
	}
	newest := []int64{math.MaxInt64}
	if !r.isServer() {
		newest[0] = -1
		if m := r.course.recall(r.rank, math.MaxInt); m != nil {
			newest[0] = int64(m.Epoch)
		}
	}
	if err := world.MinInt64s(r.world, newest); err != nil {
		return err
	}
	err := agree(r.world, r.recall(int(newest[0])))
	if err == nil {
		r.reporter.log("view number=%d carriers=%v after_epoch=%d", r.view.Number, r.view.Carrier, max(newest[0], 0))
	}
	return err
}

// recall takes up what this part continues from after an epoch. Before the first that
// is kept, and on servers, it is nothing.
func (r *run) recall(epoch int) error {
	if epoch < 0 || r.isServer() {
		return nil
	}
	m := r.course.recall(r.rank, epoch)
	if m == nil || m.Epoch != epoch {
		return fault.New(fault.Runtime, "train", "", "view %d cannot continue: no state is stored for epoch %d", r.view.Number, epoch)
	}
	r.own = m.Own
	if m.state != nil {
		r.state = m.state
	}
	return nil
}

// Wanted implements engine.Views.
func (r *run) Wanted() bool {
	r.course.mu.Lock()
	defer r.course.mu.Unlock()
	return r.course.wanted != nil
}

// Keep implements engine.Views.
func (r *run) Keep(s engine.Snapshot, own engine.Own) {
	m := memory{Epoch: s.Epoch, Own: own}
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
	r.course.keep(r.rank, m)
}

// Replaced implements engine.Views.
func (r *run) Replaced() { r.course.over() }

// leaves reports whether the view ends here, and the run does not. Collective over the
// world.
func (r *run) leaves() (bool, error) {
	if r.course == nil {
		return false, nil
	}
	ended := []int64{0}
	if !r.isServer() {
		r.course.mu.Lock()
		if r.course.ended {
			ended[0] = 1
		}
		r.course.mu.Unlock()
	}
	err := world.SumInt64s(r.world, ended)
	return ended[0] > 0, err
}
