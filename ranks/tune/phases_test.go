package tune

import "testing"

// run is the epochs of a run that train alone, with accuracies of each evaluation, and
// seconds of epochs alone and of exact ones.
func run(p *Phases, first, last int, alone, exact float64, accuracy func(epoch int) float64) (epochs []bool) {
	for e := first; e <= last; e++ {
		p.Evaluated(accuracy(e))
		epochs = append(epochs, p.Alone())
		seconds := exact
		if p.Alone() {
			seconds = alone
		}
		if medians, due := p.Ended(seconds); due {
			p.Agreed(medians)
		}
	}
	return epochs
}

// count is how many epochs from..to, counted from 1, train alone.
func count(epochs []bool, from, to int) (n int) {
	for _, alone := range epochs[from-1 : to] {
		if alone {
			n++
		}
	}
	return n
}

func rising(e int) float64 { return float64(e) / 1000 * 2 }

// Where exact epochs take hardly longer, all are exact but those of the trial.
func TestPhasesOfFastLinks(t *testing.T) {
	e := run(NewPhases(1, 100, false), 1, 100, 1, 1.05, rising)
	if count(e, 1, trial) != trial || count(e, trial+1, 100) != 0 {
		t.Error(e)
	}
}

// Where they take longer, ranks train alone until 60 % of the epochs have gone while
// accuracy rises.
func TestPhasesOfSlowLinks(t *testing.T) {
	e := run(NewPhases(1, 100, false), 1, 100, 1, 3, rising)
	if count(e, 1, trial) != trial || count(e, trial+1, 2*trial) != 0 || count(e, 2*trial+1, 60) != 60-2*trial || count(e, 61, 100) != 0 {
		t.Error(e)
	}
}

// Accuracy that rises no more ends the epochs alone before: after epoch 30 here, and
// ten epochs more.
func TestPhasesOfFlatAccuracy(t *testing.T) {
	e := run(NewPhases(1, 100, false), 1, 100, 1, 3, func(e int) float64 { return rising(min(e, 30)) })
	if count(e, 2*trial+1, 39) != 39-2*trial || count(e, 41, 100) != 0 {
		t.Error(e)
	}
}

// Accuracy that does not rise in the first quarter ends nothing.
func TestPhasesOfFlatBeginning(t *testing.T) {
	e := run(NewPhases(1, 100, false), 1, 100, 1, 3, func(e int) float64 { return 0.2 + rising(max(e, 24)) })
	if count(e, 2*trial+1, 60) != 60-2*trial || count(e, 61, 100) != 0 {
		t.Error(e)
	}
}

// A run that goes on behind its epochs alone is exact, and so is what follows Finish.
func TestPhasesEnd(t *testing.T) {
	if e := run(NewPhases(50, 100, true), 50, 100, 1, 3, rising); count(e, 1, 51) != 0 {
		t.Error(e)
	}
	p := NewPhases(1, 100, false)
	run(p, 1, 20, 1, 3, rising)
	if p.Over() || !p.Finish() || p.Finish() || !p.Over() {
		t.Error("the phase does not end once")
	}
	if e := run(p, 21, 100, 1, 3, rising); count(e, 1, 80) != 0 {
		t.Error(e)
	}
}
