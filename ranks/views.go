package ranks

import (
	"bytes"
	"cmp"
	"encoding/gob"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/safetensors"
	"siafu/internal/signals"
	"siafu/ranks/checkpoint"
	"siafu/ranks/engine"
	"siafu/ranks/inject"
	"siafu/ranks/runfolder"
	"siafu/ranks/world"
	"siafu/ranks/world/membership"
	"siafu/ranks/world/mpi"
	"siafu/ranks/world/parts"
)

// viewSequence is a training run on one rank, through its views. It implements
// parts.ElasticJob. If views are replaceable, each member runs as if resumed from a checkpoint
// that is in memory: after each epoch rank 0 stores the state of the run, and each part its own
// state. The run leaves a view
//
//   - after an epoch, if a rank has requested another view and all parts have agreed
//     (engine.Views),
//   - at any point, if the members of a rank were ended (parts.End), or
//   - at any point, if a rank is lost. Another rank has copies of the states of its parts.
//
// The rank with part 0 writes the run folder. If part 0 moves, its new rank opens the folder, which is
// locked as long as the process of the old one exists.
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
	rank        int    // this rank
	host        string // of this rank, in a world of processes
	departure   *departure
	connected   func() // called when the ranks are connected; may be nil

	files files // opened by the rank with part 0, once for all views; zero on other ranks

	mu       sync.Mutex
	members  []*member             // in the current view
	ended    bool                  // the current view ends before the run
	nextView *world.View           // proposed by this rank
	states   map[int][]storedState // by part: of the last epochs, the newest last
	few      bool                  // too few ranks are left: the run stops after an epoch
	folder   string                // of the run, after it is known
}

// storedState is the encoded partMemory of an epoch.
type storedState struct {
	epoch int
	data  []byte
}

// storedStates is the number of states that are stored of each part. No part ends an epoch before all
// parts have begun it, so two parts of a view differ by at most one epoch, and a copy is at most one
// epoch older than its part.
const storedStates = 3

// partMemory is the state of a part after an epoch.
type partMemory struct {
	Own    engine.PartState
	Folder string        // of the run
	State  *encodedState // of the run, of part 0
}

// encodedState is a checkpoint.State. Its JSON is that of a checkpoint, without the arrays.
type encodedState struct {
	JSON          []byte
	Weights, Best []encodedTensor
	Slots         []encodedSlot
	History       []byte
	Parts         [][]byte
}

// encodedTensor is a safetensors.Tensor with its numbers as bytes, which package gob copies at once.
type encodedTensor struct {
	Name  string
	Shape []int
	Data  []byte
}

type encodedSlot struct {
	Name    string
	Tensors []encodedTensor
}

func encodeTensors(list []safetensors.Tensor) (encoded []encodedTensor) {
	for _, t := range list {
		encoded = append(encoded, encodedTensor{t.Name, t.Shape, mapped.Bytes(t.Data)})
	}
	return encoded
}

func decodeTensors(encoded []encodedTensor) (list []safetensors.Tensor) {
	for _, e := range encoded {
		data := make([]float32, len(e.Data)/4)
		copy(mapped.Bytes(data), e.Data)
		list = append(list, safetensors.Tensor{Name: e.Name, Shape: e.Shape, Data: data})
	}
	return list
}

func encodeState(s *checkpoint.State) *encodedState {
	text, err := json.Marshal(s)
	if err != nil {
		panic("ranks: cannot encode the state of a run: " + err.Error())
	}
	e := &encodedState{JSON: text, Weights: encodeTensors(s.Weights), History: s.History, Parts: s.Parts}
	for _, slot := range s.Slots {
		e.Slots = append(e.Slots, encodedSlot{slot.Name, encodeTensors(slot.Tensors)})
	}
	if s.Best != nil {
		e.Best = encodeTensors(s.Best.Weights)
	}
	return e
}

func (e *encodedState) decode() (*checkpoint.State, error) {
	s := new(checkpoint.State)
	if err := json.Unmarshal(e.JSON, s); err != nil {
		return nil, err
	}
	s.Weights, s.History, s.Parts = decodeTensors(e.Weights), e.History, e.Parts
	for _, slot := range e.Slots {
		s.Slots = append(s.Slots, checkpoint.Slot{Name: slot.Name, Tensors: decodeTensors(slot.Tensors)})
	}
	if s.Best != nil {
		s.Best.Weights = decodeTensors(e.Best)
	}
	return s, nil
}

// newViewSequence makes a run. Injected faults replace a view, and lost ranks of a run that survives
// them.
func newViewSequence(c Config, data string, limits world.Limits, watcher *signals.Watcher, out IO) *viewSequence {
	return &viewSequence{
		cfg: c, data: data, limits: limits, watcher: watcher, out: out,
		replaceable: c.Survive || inject.Replaces(os.Getenv), states: map[int][]storedState{},
	}
}

// run trains in the view v, and in the views that replace it. w is nil without a launcher.
func (c *viewSequence) run(w world.Comm, v world.View) error {
	c.kind = kindOf(w)
	if c.replaceable {
		if w != nil {
			c.rank, c.host = w.Rank(), w.Hosts()[w.Rank()]
		}
		silence, err := c.cfg.SilenceLimit()
		if err != nil {
			return err
		}
		var zones []int
		if w != nil && c.cfg.Survive {
			zones, err = readZones(c.cfg.Zones, w.Hosts())
			if err := agree(w, err); err != nil {
				return err
			}
			if err := c.checkTakeovers(w, v.Parts); err != nil {
				return err
			}
			c.departure = watchDeparture(&c.cfg, c.host, c.out)
			defer c.departure.close()
			mpi.Observe(max(2*silence, minStuck), func() {
				warn(c.out, "rank %d: a call of MPI does not return; this rank ends", c.rank)
				os.Exit(fault.Runtime.ExitCode())
			})
		}
		return parts.RunViews(w, v, c, parts.Elasticity{
			LostAfter: silence, Least: c.cfg.LeastRanks, Zones: zones, Connected: c.connected,
			Lost: func() { mapped.KeepAddresses(); mpi.Forsake(w) }, Log: func(format string, args ...any) { warn(c.out, format, args...) },
		})
	}
	defer c.Ended(v)
	return runParts(w, v, func(w world.Comm) error { return c.RunMember(w, v, nil) })
}

// minStuck is the least time after which a call of MPI that never waits counts as stuck.
const minStuck = 4 * time.Second

// RunMember implements parts.ElasticJob.
func (c *viewSequence) RunMember(w world.Comm, v world.View, copied func(membership.State)) (err error) {
	defer mapped.Catch(&err)
	r := newMember(c.cfg, c.data, v, w, c.kind, c.out)
	r.limits, r.watcher, r.views, r.copied = limitsOf(v, c.limits), c.watcher, c, copied
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
func (c *viewSequence) Ended(v world.View) membership.Proposal {
	for _, r := range c.members {
		r.close()
	}
	p := membership.Proposal{View: c.nextView, Leaves: c.leaves(v)}
	if !c.ended {
		p = membership.Proposal{} // the run ended before the view could be replaced
	}
	c.members, c.ended, c.nextView = nil, false, nil
	return p
}

// leaves reports whether this rank must leave the run, but carries members in a view.
func (c *viewSequence) leaves(v world.View) bool {
	return len(v.Carried(c.rank)) > 0 && c.departure.requested(c.folder)
}

// States implements parts.ElasticJob.
func (c *viewSequence) States() (list []membership.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for part, stored := range c.states {
		for _, s := range stored {
			list = append(list, membership.State{Part: part, Epoch: s.epoch})
		}
	}
	return list
}

// Pack implements parts.ElasticJob.
func (c *viewSequence) Pack(at membership.State) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.states[at.Part] {
		if s.epoch == at.Epoch {
			return s.data
		}
	}
	return nil
}

// Unpack implements parts.ElasticJob.
func (c *viewSequence) Unpack(at membership.State, packed []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := slices.DeleteFunc(c.states[at.Part], func(s storedState) bool { return s.epoch >= at.Epoch })
	list = append(list, storedState{at.Epoch, packed})
	c.states[at.Part] = list[max(len(list)-storedStates, 0):]
}

// Continue implements parts.ElasticJob.
func (c *viewSequence) Continue(d membership.Decision) {
	moved := d.View.Rank(0) != c.rank
	c.mu.Lock()
	c.few = d.Few
	if d.Lack && len(c.states) > 0 { // the run continues from a checkpoint
		clear(c.states)
		moved = true
	}
	c.mu.Unlock()
	if c.files.reporter != nil && moved {
		c.files.reporter.close()
		c.files = files{}
	}
}

// setRunFolder records the run folder.
func (c *viewSequence) setRunFolder(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.folder = path
}

// runFolder returns the run folder, or --out if this rank does not know it.
func (c *viewSequence) runFolder() string {
	if m := c.memory(0, c.newest(0)); m != nil {
		c.setRunFolder(m.Folder)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.folder, c.cfg.Out)
}

// stops reports whether the run stops after an epoch because too few ranks are left.
func (c *viewSequence) stops() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.few
}

// close closes everything that outlives the views.
func (c *viewSequence) close() { c.files.reporter.close() }

// newest returns the epoch of the newest state of a part, -1 if it has none.
func (c *viewSequence) newest(part int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if list := c.states[part]; len(list) > 0 {
		return list[len(list)-1].epoch
	}
	return -1
}

// memory returns the state of a part after an epoch, nil if it is not stored.
func (c *viewSequence) memory(part, epoch int) *partMemory {
	data := c.Pack(membership.State{Part: part, Epoch: epoch})
	if data == nil {
		return nil
	}
	m := new(partMemory)
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(m); err != nil {
		panic("ranks: cannot decode a part's state: " + err.Error())
	}
	return m
}

// attachViews sets the actions of injected faults that replace the view. It returns a fault if the
// run cannot change its view.
func (r *member) attachViews() error {
	r.fault.Views(
		func() { r.views.requestView(r.viewWithoutRank()); parts.End(r.everyone) },
		func() { r.views.requestView(r.viewWithPartMoved()) },
	)
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
		newest[0] = int64(r.views.newest(r.rank))
	}
	if err := world.MinInt64s(r.world, newest); err != nil {
		return err
	}
	err := agree(r.world, r.restoreState(int(newest[0])))
	if err == nil {
		r.reporter.log("view number=%d carriers=%v after_epoch=%d", r.view.Number, r.view.Carrier[:r.view.Parts], max(newest[0], 0))
	}
	return err
}

// restoreState restores the state of this part after an epoch. Before the first stored epoch,
// and on servers, there is none.
func (r *opened) restoreState(epoch int) error {
	if epoch < 0 || r.isServer() {
		return nil
	}
	m := r.views.memory(r.rank, epoch)
	if m == nil {
		return fault.New(fault.Runtime, "train", "", "view %d cannot continue: no state is stored for epoch %d", r.view.Number, epoch)
	}
	r.partState = m.Own
	if m.State == nil {
		return nil
	}
	var err error
	if r.state, err = m.State.decode(); err == nil && !r.reporter.begun {
		r.beginning, err = r.continued(r.state)
	}
	return err
}

// continued returns the beginning of a run whose folder another rank has written.
func (r *opened) continued(s *checkpoint.State) (beginning, error) {
	dir := r.reporter.folder.Dir()
	b := beginning{inPlace: true, from: "the memory of a rank", epoch: s.Epoch, seconds: s.Seconds, spent: s.Spent}
	var err error
	if b.metrics, b.lines, err = runfolder.EpochsUpTo(dir, s.Epoch); err != nil {
		return b, err
	}
	return b, checkpoint.Rewindable(filepath.Join(dir, checkpoint.Dir), s.Epoch)
}

// ViewRequested implements engine.Views.
func (r *member) ViewRequested() bool {
	r.views.mu.Lock()
	defer r.views.mu.Unlock()
	return r.views.nextView != nil || r.views.leaves(r.view)
}

// StoreState implements engine.Views.
func (r *joined) StoreState(s engine.Snapshot, own engine.PartState) {
	m := partMemory{Own: own, Folder: r.views.folder}
	if r.rank == 0 {
		state := r.stateOf(s)
		m.State = encodeState(&state)
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(m); err != nil {
		panic("ranks: cannot encode a part's state: " + err.Error())
	}
	at := membership.State{Part: r.rank, Epoch: s.Epoch}
	r.views.Unpack(at, b.Bytes())
	r.copied(at)
}

// stateShare is the share of the time that states may take: with epochs of a few milliseconds, they
// are stored every tenth of a second.
const stateShare = 0.01

// Share implements engine.Views.
func (r *member) Share() float64 {
	if r.cfg.Survive {
		return stateShare
	}
	return 0
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
