package engine

import (
	"siafu/halo/refresh"
	"siafu/ranks/runfolder"
	"siafu/ranks/tune"
	"siafu/ranks/world"
)

// With --refresh auto epochs use one of two routes: the exact route of evaluations, or one
// without ghosts. tune.Phases chooses; its input is the same on all ranks.

// beginPhases starts the choice for the epochs from first on, if there are two routes.
func (t *trainer) beginPhases(e *Engine, first int) {
	if t.alternates {
		t.phases = tune.NewPhases(first, e.Config.Epochs, e.Exact)
	}
}

// chooseRoute sets the route of an epoch and its evaluation.
func (t *trainer) chooseRoute(*epochState) (leave bool, err error) {
	t.setRoute()
	return false, nil
}

func (t *trainer) setRoute() {
	if t.training = t.exact; t.phases.Alone() {
		t.training = t.inexactRoute
	}
}

// observeEvaluation processes the line of an evaluation before its epoch is trained. It may
// end the epochs without ghosts.
func (t *trainer) observeEvaluation(line *runfolder.Epoch) {
	if t.phases != nil {
		t.phases.Evaluated(line.Loss, line.EvalSeconds)
		t.setRoute()
	}
}

// endAlonePhase ends the epochs without ghosts. It reports whether that changes anything.
func (t *trainer) endAlonePhase() bool { return t.phases != nil && t.phases.Finish() }

// phase returns the phase that an epoch was trained in, "" if there is no choice.
func (t *trainer) phase() string {
	switch {
	case t.phases == nil:
		return ""
	case t.training == t.exact:
		return refresh.NameAlways
	}
	return refresh.NameNever
}

// observeEpoch processes the line of an epoch that has ended. Collective over the graph ranks.
func (t *trainer) observeEpoch(e *epochState) (leave bool, err error) {
	report, due := t.phases.Ended(e.line.Seconds, e.line.Loss)
	if !due {
		return false, nil
	}
	if err := world.MaxFloat64s(t.comm, report[:]); err != nil {
		return false, err
	}
	t.reporter.Note(t.phases.Agreed(report) + "\n")
	return false, nil
}
