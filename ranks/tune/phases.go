package tune

import (
	"fmt"
	"slices"

	"siafu/ranks/runfolder"
)

// Phases chooses the ghost rows of each epoch, for --refresh auto. An epoch trains without ghost
// rows, so that ranks train alone on their own vertices, or exactly, with ghost rows of the same
// epoch. Its stages, in their order:
//
//	timing    some epochs without ghost rows. Their time is measured, and the time of the
//	          evaluations before them. An evaluation receives ghost rows in its forward
//	          pass. If it takes longer than an epoch, so does an exact epoch. The next
//	          stage is then skipped, because it would be expensive
//	probing   some exact epochs, with measured time
//	alone     epochs without ghost rows, if exact epochs take longer. This stage ends when
//	          the loss of the whole graph no longer falls, when it is far above the loss
//	          on the ranks' own parts (the ranks then overfit to their parts), and when
//	          the run is nearly over
//	exact     the remaining epochs
//
// Most of the training happens alone, without communication. A few exact epochs then adapt the
// weights to the whole graph: accuracy rises by percentage points in the first three
// (docs/stale.md). Sampled ghost rows, and exact epochs interleaved with the others, took more time
// and gave less accuracy.
type Phases struct {
	epoch int // the last epoch that has ended
	last  int // the last epoch of the run
	stage stage
	plan  []bool // whether ranks train alone, by epoch, if that is given

	// Seconds on this rank.
	alone, exact, evaluations []float64

	loss  float64 // of the whole graph with the weights of the next epoch; 0: unknown
	least float64 // minimum of loss so far
	since int     // the last epoch before that minimum
}

type stage uint8

const (
	timing stage = iota
	probing
	alone
	exact
)

// Limits of the stages.
const (
	trial     = 4   // epochs of a measurement; the first one does not count
	worthIt   = 1.3 // above this ratio of exact time to time alone, ranks train alone
	mostAlone = 0.9 // maximal fraction of all epochs alone
	flat      = 0.1 // fraction of all epochs without a lower loss that ends stage alone
	leastFlat = 10  // minimum of these epochs
	misled    = 2   // above this ratio of the loss of the graph to the ranks' loss, stage alone ends
)

// NewPhases returns the phases of the epochs first to last. over is set if a resumed run has
// already left stage alone.
func NewPhases(first, last int, over bool) *Phases {
	p := &Phases{epoch: first - 1, last: last, since: first - 1}
	if over || p.late() {
		p.stage = exact
	}
	return p
}

// Follow makes the phases those of another run, by epoch: alone reports whether it trained without ghost
// rows. Later epochs are exact.
func (p *Phases) Follow(alone []bool) { p.plan = alone }

// late reports whether the run is nearly over.
func (p *Phases) late() bool { return float64(p.epoch) >= mostAlone*float64(p.last) }

// Alone reports whether the next epoch trains without ghost rows.
func (p *Phases) Alone() bool {
	if p.plan != nil {
		return p.epoch < len(p.plan) && p.plan[p.epoch]
	}
	return p.stage == timing || p.stage == alone
}

// Over reports whether all further epochs are exact. It is false for nil.
func (p *Phases) Over() bool {
	switch {
	case p == nil:
		return false
	case p.plan != nil:
		return !slices.Contains(p.plan[min(p.epoch, len(p.plan)):], true)
	}
	return p.stage == exact
}

// Evaluated records the loss of the whole graph with the weights at the start of the next epoch,
// and the seconds of the evaluation on this rank. The loss must be equal on all ranks.
func (p *Phases) Evaluated(loss, seconds float64) {
	if p.loss = loss; p.least == 0 || loss < p.least {
		p.least, p.since = loss, p.epoch
	}
	if p.stage == timing {
		p.evaluations = append(p.evaluations, seconds)
	}
	if p.stage == alone && float64(p.epoch-p.since) >= max(leastFlat, flat*float64(p.last)) {
		p.stage = exact
	}
}

// Ended records the seconds of an epoch on this rank and its loss, which must be equal on all
// ranks. If due, the ranks must agree on the maximum of each number in report and call Agreed. due
// is equal on all ranks.
func (p *Phases) Ended(seconds, loss float64) (report [2]float64, due bool) {
	p.epoch++
	if p.plan != nil {
		return report, false
	}
	whole := p.loss
	p.loss = 0
	switch p.stage {
	case timing:
		p.alone = append(p.alone, seconds)
		due = len(p.alone) == trial
		report = [2]float64{steady(p.alone), steady(p.evaluations)}
	case probing:
		p.exact = append(p.exact, seconds)
		due = len(p.exact) == trial
		report = [2]float64{steady(p.alone), steady(p.exact)}
	case alone:
		if whole > misled*loss {
			p.stage = exact
		}
	}
	if p.late() {
		p.stage, due = exact, false
	}
	return report, due
}

// Agreed chooses the next stage by the maximum of the reports of all ranks. It returns a line
// about it.
func (p *Phases) Agreed(report [2]float64) string {
	what, follows := "an epoch", "exact from now on"
	longer := report[1] > worthIt*report[0]
	switch {
	case longer:
		p.stage, follows = alone, "ranks train alone at first"
	case p.stage == timing:
		p.stage, follows = probing, "exact for some epochs"
	default:
		p.stage = exact
	}
	if p.exact == nil {
		what = "an evaluation"
	}
	return fmt.Sprintf("refresh auto: an epoch takes %.4f s without ghosts and %s %.4f s with them -> %s",
		report[0], what, report[1], follows)
}

// Finish makes all further epochs exact. It reports whether they were not exact before.
func (p *Phases) Finish() bool {
	was := !p.Over()
	p.stage, p.plan = exact, nil
	return was
}

// steady returns the median of seconds without the first, or 0 if there are no others.
func steady(seconds []float64) float64 {
	if len(seconds) < 2 {
		return 0
	}
	return runfolder.Median(seconds[1:])
}
