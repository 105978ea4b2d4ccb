package engine

import (
	"siafu/halo"
	"siafu/halo/predict"
	"siafu/internal/wire"
	"siafu/kernels/model"
)

// stepper trains the steps of an epoch: with the full graph, with mini-batches, or with a stage of a
// pipeline of layers. A step is one update of the weights.
type stepper interface {
	// resume returns the step with which an epoch begins, 0 unless a step continues an earlier view's.
	// Collective over the graph ranks.
	resume(epoch int) (k int, err error)
	// train runs the passes of the k-th step of an epoch, and sums the gradients of all layers on this rank;
	// step counts the run's steps. If isFull, the forward pass may have run already. Collective over the graph
	// ranks.
	train(epoch, k, step int, forwardDone bool) error
	// endStep is called after the update of the weights.
	endStep()
	// interrupted is called when err has ended the k-th step, and returns the error of the run.
	interrupted(k int, err error) error
	// isFull reports whether steps and evaluations run on the same intervals.
	isFull() bool
	// sources returns the sources of ghost rows. Evaluations have already taken their counts.
	sources() []statsSource
	// pack returns this part's state beyond the weights, and packHistory the history of rows of all ranks
	// on rank 0: nil without one. With the full graph, a part's state is a line that describes its transfers,
	// and the state of its halo.Portable source. Collective over the graph ranks.
	pack() ([]byte, error)
	packHistory() ([]byte, error)
	// unpack restores the result of pack, if it is of the same transfers on all ranks. Collective over the
	// graph ranks.
	unpack(own []byte) error
	// hasState reports whether a view that continues needs the result of pack.
	hasState() bool
	// takePredictions returns the counts of predictions since the last call.
	takePredictions() predict.Counts
	// activity describes the current step.
	activity() string
}

// fullGraph is the stepper with one step in an epoch, of all vertices.
type fullGraph struct{ t *trainer }

func (f fullGraph) resume(int) (k int, err error) { return 0, nil }

func (f fullGraph) train(_, _, step int, forwardDone bool) error {
	return f.t.trainPass(f.t.lockstep, step, forwardDone)
}

func (f fullGraph) endStep() {}

func (f fullGraph) interrupted(_ int, err error) error { return err }

func (f fullGraph) isFull() bool { return true }

func (f fullGraph) sources() (list []statsSource) {
	for _, r := range []*route{f.t.routes.training, f.t.routes.exact} {
		if r.exchanges() {
			list = append(list, r.ghosts)
		}
	}
	return list
}

func (f fullGraph) packHistory() ([]byte, error) { return nil, nil }

func (f fullGraph) hasState() bool { return f.t.hasLastingState() }

func (f fullGraph) takePredictions() (c predict.Counts) {
	if p, ok := f.t.routes.training.ghosts.(predictor); ok {
		c = p.TakeCounts()
	}
	return c
}

func (f fullGraph) activity() string { return f.t.lockstep.activity() }

// trainPass trains a step with the passes of a lockstep. Collective over the graph ranks.
func (t *trainer) trainPass(s *lockstep, step int, forwardDone bool) error {
	if err := s.train(model.Pass{Epoch: step, Train: true}, forwardDone); err != nil {
		return err
	}
	t.stale.recordTrained(step, t.grad)
	t.now.loss += t.localFindings(s.intervals)[trainLoss]
	return nil
}

// statsSource counts its transfers to other ranks.
type statsSource interface{ TakeStats() halo.Stats }

// predictor counts its predictions of rows.
type predictor interface{ TakeCounts() predict.Counts }

// noRows is a source without rows of other ranks or earlier steps.
type noRows struct{}

func (noRows) TakeStats() halo.Stats      { return halo.Stats{} }
func (noRows) TakeCounts() predict.Counts { return predict.Counts{} }
func (noRows) Pack() []byte               { return nil }
func (noRows) Unpack([]byte) error        { return nil }
func (noRows) Bytes() int64               { return 0 }
func (noRows) Taken(int, int) bool        { return false }

// Accept implements pushedRows: no rank may push rows.
func (noRows) Accept(from int, message []byte) (s halo.Slot, due bool, err error) {
	return s, false, wire.Unexpected("train", from, wire.KindOf(message))
}
