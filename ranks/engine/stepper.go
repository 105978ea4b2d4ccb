package engine

import (
	"siafu/halo"
	"siafu/halo/predict"
	"siafu/kernels/model"
)

// stepper trains the steps of an epoch: with the full graph, with mini-batches, or with a stage of a
// pipeline of layers. A step is one update of the weights.
type stepper interface {
	// resume returns the step with which an epoch begins, 0 unless a step continues an earlier view's.
	// Collective over the graph ranks.
	resume(epoch int) (k int, err error)
	// train runs the passes of the k-th step of an epoch, and sums the gradients of all layers on this rank;
	// step counts the run's steps. Collective over the graph ranks.
	train(epoch, k, step int) error
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
	// predictor returns the source of predicted ghost rows, if there is one.
	predictor() (*predict.Source, bool)
	// activity describes the current step.
	activity() string
}

// fullGraph is the stepper with one step in an epoch, of all vertices.
type fullGraph struct{ t *trainer }

func (f fullGraph) resume(int) (k int, err error) { return 0, nil }

func (f fullGraph) train(_, _, step int) error { return f.t.trainPass(f.t.lockstep, step) }

func (f fullGraph) endStep() {}

func (f fullGraph) interrupted(_ int, err error) error { return err }

func (f fullGraph) isFull() bool { return true }

func (f fullGraph) sources() (list []statsSource) {
	for _, r := range []*route{f.t.training, f.t.exact} {
		if r.exchanges() {
			list = append(list, r.ghosts)
		}
	}
	return list
}

func (f fullGraph) packHistory() ([]byte, error) { return nil, nil }

func (f fullGraph) hasState() bool { return f.t.hasLastingState() }

func (f fullGraph) predictor() (*predict.Source, bool) {
	p, ok := f.t.training.ghosts.(*predict.Source)
	return p, ok
}

func (f fullGraph) activity() string { return f.t.lockstep.activity() }

// trainPass trains a step with the passes of a lockstep. Collective over the graph ranks.
func (t *trainer) trainPass(s *lockstep, step int) error {
	if err := s.train(model.Pass{Epoch: step, Train: true}, t.now.ready); err != nil {
		return err
	}
	t.now.loss += t.localFindings(s.intervals)[trainLoss]
	return nil
}

// statsSource counts its transfers to other ranks.
type statsSource interface{ TakeStats() halo.Stats }

// noStats counts nothing.
type noStats struct{}

func (noStats) TakeStats() halo.Stats { return halo.Stats{} }
