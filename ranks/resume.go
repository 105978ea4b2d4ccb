package ranks

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"siafu/graph"
	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/ranks/checkpoint"
	"siafu/ranks/runfolder"
	"siafu/ranks/world"
)

// resumed is where a run goes on from; the zero value is the beginning.
type resumed struct {
	epoch    int // the last one trained
	switched bool
	weights  []float32
	slots    [][]float32
	best     []float32 // nil before the first evaluation
	bestLine runfolder.Epoch
	last     runfolder.Epoch
}

// history is what the run knows of the epochs before.
func (r *run) history() *history {
	h := &history{patience: r.cfg.Patience, target: r.cfg.TargetAcc, hasVal: r.meta.Val > 0}
	if r.from.best != nil {
		h.best, h.bestLine, h.last = slices.Clone(r.from.best), r.from.bestLine, r.from.last
	}
	return h
}

// ended tells whether the run that is to go on has come to its end, and needs
// no rank at all.
func (c *Config) ended() bool {
	if c.Resume != "auto" || c.Out == "" {
		return false
	}
	s := runfolder.Ended(c.Out)
	return s != nil && (s.StoppedBy != "epochs" || s.Epochs >= c.Epochs)
}

// lockWait is how long a run waits for another one that writes its folder and
// may be about to end, as before a restart.
const lockWait = 10 * time.Second

// enter makes the run folder, or opens that of a run that goes on. On rank 0.
func (r *run) enter(meta *graph.Meta, out IO) error {
	if err := r.unused(); err != nil {
		return err
	}
	state, err := r.find(out)
	if err != nil {
		return err
	}
	folder, err := r.folder(state, meta.Name)
	if err != nil {
		return err
	}
	r.lock, err = checkpoint.Acquire(folder.Dir(), lockWait)
	if err != nil {
		return errors.Join(err, folder.Close())
	}
	if r.voice, err = newVoice(r.cfg, folder, r.kind, out); err != nil {
		return err
	}
	if r.lock.Warning != "" {
		r.voice.warn("%s", r.lock.Warning)
	}
	r.state = state
	return nil
}

// find reads the checkpoint that --resume asks for, nil for none.
func (r *run) find(out IO) (*checkpoint.State, error) {
	c := r.cfg
	var state *checkpoint.State
	var problems []checkpoint.Problem
	var err error
	switch {
	case c.Resume == "" || c.Resume == "auto" && c.Out == "":
		return nil, nil
	case c.Resume == "auto":
		state, problems, err = checkpoint.Latest(filepath.Join(c.Out, checkpoint.Dir))
	default:
		state, problems, err = checkpoint.Open(c.Resume)
	}
	for _, p := range problems {
		warn(out, "the checkpoint %s is passed over: %v", p.Path, p.Err)
	}
	if err == nil && state == nil && len(problems) > 0 {
		err = fault.New(fault.Data, "resume", c.Out, "none of its %d checkpoints is whole", len(problems)).
			Then("start again in another --out, or with --force")
	}
	return state, err
}

// folder is the run folder: the same one where its own run goes on.
func (r *run) folder(state *checkpoint.State, name string) (*runfolder.Folder, error) {
	c := r.cfg
	if state == nil {
		again := c.Resume == "auto" && c.Out != "" && runfolder.Abandoned(c.Out) // it has saved nothing yet
		return runfolder.Create(c.Out, name, c.Force || again)
	}
	if own := filepath.Dir(filepath.Dir(state.Path)); c.Out != "" && sameFolder(own, c.Out) {
		return runfolder.Reopen(c.Out)
	}
	return runfolder.Create(c.Out, name, c.Force)
}

// unused fails where another process writes the run folder that is there. One
// that is to go on may have to wait for a rank 0 that is being ended.
func (r *run) unused() error {
	if !runfolder.IsRun(r.cfg.Out) {
		return nil
	}
	wait := time.Duration(0)
	if r.cfg.Resume != "" {
		wait = lockWait
	}
	lock, err := checkpoint.Acquire(r.cfg.Out, wait)
	if err != nil {
		return err
	}
	return lock.Release()
}

func sameFolder(a, b string) bool {
	x, errX := filepath.EvalSymlinks(a)
	y, errY := filepath.EvalSymlinks(b)
	if errX != nil || errY != nil {
		return false
	}
	x, errX = filepath.Abs(x)
	y, errY = filepath.Abs(y)
	return errX == nil && errY == nil && x == y
}

// goOn settles on rank 0 that the run goes on from the state that was read: the
// settings agree, nothing newer stays, and metrics.jsonl has the epochs so far.
func (r *run) goOn() error {
	s, v := r.state, r.voice
	if err := s.Settings.Agree(s.Path, r.settings()); err != nil {
		return err
	}
	dir := v.folder.Dir()
	if _, err := checkpoint.Rewind(filepath.Join(dir, checkpoint.Dir), s.Epoch); err != nil {
		return err
	}
	lines := filepath.Join(filepath.Dir(filepath.Dir(s.Path)), runfolder.Metrics)
	err := s.Metrics.Restore(lines, filepath.Join(dir, runfolder.Metrics))
	if fault.KindOf(err) == fault.Missing {
		v.warn("%v: metrics begin with epoch %d", err, s.Epoch+1)
		err = nil
	}
	if err != nil {
		return err
	}
	v.log("resume epoch=%d from=%s", s.Epoch, s.Path)
	return v.recall()
}

// resumption is what rank 0 tells the others of where the run goes on.
type resumption struct {
	Epoch    int
	Switched bool
	HasBest  bool
	Best     runfolder.Epoch
	Last     runfolder.Epoch
	Slots    int
}

// takeUp gives everybody the state of the run that goes on, and its weights.
// Collective over the world.
func (r *run) takeUp(weights []float32) error {
	var blob []byte
	var err error
	if r.state != nil {
		if err = r.goOn(); err == nil {
			blob, err = r.offer()
		}
	}
	if err := agree(r.world, err); err != nil {
		return err
	}
	if blob, err = world.BcastBlob(r.world, blob, 0); err != nil || len(blob) == 0 {
		return err
	}
	var m resumption
	if err := json.Unmarshal(blob, &m); err != nil {
		return err
	}
	r.from.epoch, r.from.switched, r.from.bestLine, r.from.last = m.Epoch, m.Switched, m.Best, m.Last
	if r.rank != 0 {
		room := func() []float32 { return make([]float32, len(weights)) }
		r.from.weights = room()
		for range m.Slots {
			r.from.slots = append(r.from.slots, room())
		}
		if m.HasBest {
			r.from.best = room()
		}
	}
	for _, part := range append(slices.Clone(r.from.slots), r.from.weights, r.from.best) {
		if part == nil {
			continue
		}
		if err := r.world.Bcast(mapped.Bytes(part), 0); err != nil {
			return err
		}
	}
	copy(weights, r.from.weights)
	r.state = nil
	return nil
}

// offer takes the state apart on rank 0.
func (r *run) offer() ([]byte, error) {
	s := r.state
	m := resumption{Epoch: s.Epoch, Switched: s.Switched, Slots: len(s.Slots)}
	r.from.weights = r.flat(s.Weights)
	for _, slot := range s.Slots {
		r.from.slots = append(r.from.slots, r.flat(slot.Tensors))
	}
	if s.Best != nil {
		m.HasBest, m.Best, r.from.best = true, s.Best.Line, r.flat(s.Best.Weights)
	}
	if s.Last != nil {
		m.Last = *s.Last
	}
	return json.Marshal(m)
}
