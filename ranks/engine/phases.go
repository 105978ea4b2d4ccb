package engine

import (
	"siafu/halo/refresh"
	"siafu/ranks/world"
)

// With --refresh auto epochs use one of two routes: the exact route of evaluations, or one
// without ghosts. tune.Phases chooses; its input is the same on all ranks.

// chooseRoute sets the route of an epoch and its evaluation.
func (t *trainer) chooseRoute(*epochState) (leave bool, err error) {
	t.setRoute()
	return false, nil
}

func (t *trainer) setRoute() {
	if t.routes.training = t.routes.exact; t.phases.Alone() {
		t.routes.training = t.routes.alone
	}
}

// phase returns the phase that an epoch was trained in, "" if there is no choice.
func (t *trainer) phase() string {
	switch {
	case !t.routes.alternate():
		return ""
	case t.routes.training == t.routes.exact:
		return refresh.NameAlways
	}
	return refresh.NameNever
}

// without reports for each policy whether ranks train without ghost rows.
func without(policies []string) (alone []bool) {
	for _, name := range policies {
		alone = append(alone, name == refresh.NameNever)
	}
	return alone
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
