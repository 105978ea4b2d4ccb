package engine

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/ranks/checkpoint"
	"siafu/ranks/world"
)

// Views is the engine's interface to a run whose view may be replaced (world.View): between
// two epochs if a rank requests it, or at any time.
type Views interface {
	// ViewRequested reports whether this rank requests the end of the view after the current
	// epoch. If any rank does, all parts end it there.
	ViewRequested() bool
	// StoreState stores the state to continue from, before the first epoch and after later ones.
	// s is complete only on rank 0, and valid until StoreState returns. own is this part's own
	// state, empty before the first epoch and if later epochs do not need it.
	StoreState(s checkpoint.State, own []byte)
	// StoreStep stores the state of a step in which the view has ended.
	StoreStep(s StepState)
	// Share is the largest fraction of the time that states may take if epochs are short; 0: a
	// state is stored after each epoch.
	Share() float64
	// Replaced is called when the view ends here.
	Replaced()
}

// storage decides after which epochs states are stored. Rank 0 decides.
type storage struct {
	stored time.Time     // at which the last state was stored
	took   time.Duration // to store it
	skips  bool          // no state is stored after the current epoch: the same on all graph ranks
}

// due reports whether states may take their share of the time again.
func (s *storage) due(share float64) bool {
	return share == 0 || float64(time.Since(s.stored))*share >= float64(s.took)
}

// storeView stores the state to continue from in another view, and ends this view if all ranks
// have agreed on that. Collective over the graph ranks, which have agreed.
func (t *trainer) storeView(e *epochState) (leave bool, err error) {
	epoch := e.line.Epoch
	if epoch > t.cfg.Epochs || !t.cfg.Shared(epoch) || t.storage.skips && !t.viewRequested {
		return false, nil
	}
	began := time.Now()
	s, err := t.state(epoch - 1)
	if err != nil {
		return false, err
	}
	var own []byte
	if t.steps.hasState() {
		if own, err = t.steps.pack(); err != nil {
			return false, err
		}
	}
	t.views.StoreState(s, own)
	t.storage.stored, t.storage.took = time.Now(), time.Since(began)
	if !t.viewRequested {
		return false, nil
	}
	t.views.Replaced()
	t.stopped = true
	return true, t.servers.Leave()
}

// pack implements stepper.
func (f fullGraph) pack() ([]byte, error) {
	t := f.t
	source, ok := t.routes.training.ghosts.(halo.Portable)
	if !ok { // no rows are exchanged
		return nil, nil
	}
	l, err := source.Pack()
	if err != nil {
		return nil, err
	}
	return l.Encode(append([]byte(t.label()), '\n')), nil
}

// label describes a part's transfers: packed state fits only transfers with the same label.
func (t *trainer) label() string {
	p, sum := t.routes.training.graph.Plan, crc32.NewIEEE()
	for _, ids := range [][]uint32{p.OwnIDs, p.GhostIDs, p.SendRows} {
		sum.Write(mapped.Bytes(ids))
	}
	more := ""
	if t.cfg.Predicts() {
		more = fmt.Sprintf(" predict=%s rows=%d history=%s", t.cfg.Predict, t.cfg.PredictRows, t.cfg.PredictHistory)
		if t.cfg.TrainsPredictor() {
			more = fmt.Sprintf(" predict=%s rows=%d window=%d input=%s hold=%t", t.cfg.Predict, t.cfg.PredictRows, t.cfg.PredictWindow,
				t.cfg.PredictInput, t.cfg.PredictHold)
		}
	}
	if t.net.WholeRows {
		more += " whole"
	}
	return fmt.Sprintf("refresh=%s gradients=%t codec=%s rows=%v part=%d/%d sent=%d of %08x%s",
		t.cfg.Ghosts(), t.cfg.Returns(), t.cfg.Codec, t.routes.training.shapes(), t.comm.Rank(), t.comm.Size(),
		len(p.SendRows), sum.Sum32(), more)
}

// unpack implements stepper.
func (f fullGraph) unpack(own []byte) error {
	t := f.t
	source, ok := t.routes.training.ghosts.(halo.Portable)
	if !ok || len(own) == 0 {
		return nil
	}
	label, rest, _ := bytes.Cut(own, []byte{'\n'})
	fit := []int64{0}
	if string(label) == t.label() {
		fit[0] = 1
	}
	if err := world.SumInt64s(t.comm, fit); err != nil {
		return err
	}
	if fit[0] < int64(t.comm.Size()) {
		t.reporter.Note("refresh: reset the cached ghost rows: the checkpoint has another partition, policy, prediction or codec\n")
		return nil
	}
	l, err := halo.DecodeSourceState(rest)
	if err != nil {
		return err
	}
	return source.Unpack(l)
}

// hasLastingState reports whether transfers have state beyond the current epoch's rows, which
// a resumed run needs for the same bits.
func (t *trainer) hasLastingState() bool {
	if _, ok := t.routes.training.ghosts.(halo.Portable); !ok {
		return false
	}
	return strings.HasSuffix(t.cfg.Codec, "+ef") || t.cfg.Ghosts().NeedsStoredRows()
}
