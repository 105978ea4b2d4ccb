package ranks

import (
	"math"
	"path/filepath"

	"siafu/internal/fault"
	"siafu/ranks/checkpoint"
	"siafu/ranks/engine"
	"siafu/ranks/runfolder"
	"siafu/ranks/schedule/pipeline"
	"siafu/ranks/world"
	"siafu/ranks/world/membership"
	"siafu/ranks/world/parts"
)

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
		lost, joined := r.views.changes()
		r.reporter.log("view number=%d carriers=%v after_epoch=%d lost=%d joined=%d", r.view.Number, r.view.Carrier[:r.view.Parts],
			max(newest[0], 0), lost, joined)
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
	if len(m.State) == 0 {
		return nil
	}
	var err error
	if r.state, err = checkpoint.Decode(m.State, runfolder.FromMemory); err == nil && !r.reporter.begun {
		r.beginning, err = r.continued(r.state)
	}
	return err
}

// continued returns the beginning of a run whose folder another rank has written.
func (r *opened) continued(s *checkpoint.State) (beginning, error) {
	dir := r.reporter.folder.Dir()
	b := beginning{inPlace: true}
	var err error
	if b.metrics, _, err = runfolder.LinesUpTo(dir, s.Epoch); err != nil {
		return b, err
	}
	return b, checkpoint.Rewindable(filepath.Join(dir, checkpoint.Dir), s.Epoch)
}

// ViewRequested implements engine.Views.
func (r *member) ViewRequested() bool {
	v := r.views
	admits := v.admission != nil && v.admission.Requested() // before mu, see viewSequence
	v.mu.Lock()
	defer v.mu.Unlock()
	v.admits = v.admits || admits
	return v.nextView != nil || v.admits || v.leaves(r.view)
}

// StoreState implements engine.Views.
func (r *joined) StoreState(s checkpoint.State, own []byte) {
	m := partMemory{Own: own, Folder: r.views.folder}
	if r.rank == 0 {
		r.describe(&s)
		var err error
		if m.State, err = s.Encode(); err != nil {
			panic("ranks: cannot encode the state of a run: " + err.Error())
		}
	}
	at := membership.State{Part: r.rank, Epoch: s.Epoch}
	r.views.Unpack(at, m.encode())
	r.copied(at)
}

// StoreStep implements engine.Views.
func (r *joined) StoreStep(s engine.StepState) {
	r.views.mu.Lock()
	defer r.views.mu.Unlock()
	r.views.steps[r.rank] = interrupted{r.view.Number, s}
}

// step returns the state of a step in which the last view has ended, from which a part continues: its own,
// or what its shadow has computed for it. It returns the zero value if this rank has none.
func (c *viewSequence) step(r *member) engine.StepState {
	c.mu.Lock()
	defer c.mu.Unlock()
	if own, ok := c.steps[r.rank]; ok && own.view == r.view.Number-1 {
		return own.step
	}
	if shadow, ok := r.view.Shadow(r.rank); ok {
		if of, ok := c.steps[shadow]; ok && of.view == r.view.Number-1 {
			return of.step.Protected()
		}
	}
	return engine.StepState{}
}

// stateShare is the share of the time that states may take: with epochs of a few milliseconds, they
// are stored every tenth of a second.
const stateShare = 0.01

// Share implements engine.Views.
func (r *member) Share() float64 {
	// a lost stage continues only in the epoch after a stored state
	if r.cfg.Survive && r.cfg.PipelineSettings().Redundancy == pipeline.Off {
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
