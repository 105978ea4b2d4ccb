package tune

import "fmt"

// Phases chooses with which ghosts the epochs of a run train, for --refresh auto: with
// none, so that ranks train alone on their own vertices, or with those of the same epoch,
// which is exact. Its states, in their order:
//
//	alone     some epochs without ghosts, whose time is measured
//	exact     some epochs with them, whose time is measured
//	decided   where epochs with ghosts take hardly longer, all others have them. Else
//	          ranks train alone again until accuracy rises no more, and exactly from
//	          then on: what partitions cannot know of each other is learnt at the end
//
// What ranks learn alone is most of what they learn, on every graph that was tried, and
// costs no communication; what is missing then are few epochs (docs/training.md). Other
// policies lie between the two in time and below both in accuracy.
type Phases struct {
	epoch int // the last one that has ended
	last  int // the last one of the run

	times   [2][]float64 // of epochs without and with ghosts, on this rank
	decided bool
	alone   bool // in the epoch to come

	best  float64 // validation accuracy
	since int     // the epoch of it
}

// How long phases are.
const (
	trial     = 4    // epochs of each, of which the first is not measured
	worthIt   = 1.1  // times as long is what exact epochs may take and still be the only ones
	mostAlone = 0.6  // of all epochs
	flat      = 0.1  // of all epochs without a gain end the phase
	leastFlat = 10   // epochs
	gain      = 1e-3 // of accuracy
	flatFrom  = 0.25 // of all epochs have gone before that counts: many runs begin flat
)

// NewPhases chooses for the epochs first to last. over says that a run that goes on has
// been past its epochs alone.
func NewPhases(first, last int, over bool) *Phases {
	return &Phases{epoch: first - 1, last: last, decided: over, alone: !over, since: first - 1}
}

// Alone tells whether the epoch to come trains without ghosts.
func (p *Phases) Alone() bool { return p.alone }

// Over tells whether all epochs to come are exact. Those of nil are none of its.
func (p *Phases) Over() bool { return p != nil && p.decided && !p.alone }

// Ended takes the seconds of an epoch on this rank. due tells, the same on all ranks,
// whether they are now to agree on the largest of both medians and call Agreed.
func (p *Phases) Ended(seconds float64) (medians [2]float64, due bool) {
	p.epoch++
	if p.decided {
		if p.alone && float64(p.epoch) >= mostAlone*float64(p.last) {
			p.alone = false
		}
		return medians, false
	}
	of := &p.times[0]
	if !p.alone {
		of = &p.times[1]
	}
	if *of = append(*of, seconds); len(*of) < trial {
		return medians, false
	}
	if p.alone {
		p.alone = false
		return medians, false
	}
	return [2]float64{median(p.times[0][1:]), median(p.times[1][1:])}, true
}

// Agreed takes what Ended has reported, the largest of all ranks. It says what follows.
func (p *Phases) Agreed(medians [2]float64) string {
	p.decided = true
	alone, exact := medians[0], medians[1]
	p.alone = exact > worthIt*alone && float64(p.epoch) < mostAlone*float64(p.last)
	what := "exact from now on"
	if p.alone {
		what = "ranks train alone while accuracy rises"
	}
	return fmt.Sprintf("refresh auto: an epoch takes %.4f s without ghosts and %.4f s with them -> %s", alone, exact, what)
}

// Evaluated takes the validation accuracy of the weights that the epoch to come starts
// from, the same on all ranks.
func (p *Phases) Evaluated(accuracy float64) {
	if accuracy >= p.best+gain {
		p.best, p.since = accuracy, p.epoch
	}
	if p.decided && float64(p.epoch) >= flatFrom*float64(p.last) && float64(p.epoch-p.since) >= max(leastFlat, flat*float64(p.last)) {
		p.alone = false
	}
}

// Finish ends the epochs alone. It tells whether there were more to come.
func (p *Phases) Finish() bool {
	was := !p.Over()
	p.decided, p.alone = true, false
	return was
}
