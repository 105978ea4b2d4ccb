package tune

import "fmt"

// Phases chooses with which ghosts the epochs of a run train, for --refresh auto: with
// none, so that ranks train alone on their own vertices, or with those of the same epoch,
// which is exact. Its stages, in their order:
//
//	timing    some epochs without ghosts, whose time is measured, and that of the
//	          evaluations before them. These gather ghosts on their forward pass: where
//	          they take longer than such an epoch, an exact one does, and the next
//	          stage is left out, which costs most there
//	probing    some exact epochs, whose time is measured
//	alone     epochs without ghosts, where exact ones take longer. They end when the loss
//	          of the whole graph falls no more, when it is far above the one that ranks
//	          see by themselves, who then learn what holds for their parts only, and
//	          when the run is nearly over
//	exact     the others
//
// What ranks learn alone is most of what they learn, and costs no communication. Few
// exact epochs then bring the weights to what the whole graph asks for: accuracy rises by
// points in the first three (docs/stale.md). Noise of sampled ghosts, and exact epochs
// strewn among the others, took more time for less.
type Phases struct {
	epoch int // the last one that has ended
	last  int // the last one of the run
	stage stage

	// Seconds on this rank.
	alone, exact, evaluations []float64

	loss  float64 // of the whole graph with the weights of the coming epoch, 0: not known
	least float64 // that was seen of it
	since int     // the epoch behind which it was
}

type stage uint8

const (
	timing stage = iota
	probing
	alone
	exact
)

// How long stages are.
const (
	trial     = 4   // epochs, of which the first is not measured
	worthIt   = 1.3 // times as long is what exact epochs may take and still be the only ones
	mostAlone = 0.9 // of all epochs
	flat      = 0.1 // of all epochs in which the loss does not fall end the epochs alone
	leastFlat = 10  // epochs
	misled    = 2   // times the loss that ranks see by themselves is too much
)

// NewPhases chooses for the epochs first to last. over says that a run that continues has
// been past its epochs alone.
func NewPhases(first, last int, over bool) *Phases {
	p := &Phases{epoch: first - 1, last: last, since: first - 1}
	if over || p.late() {
		p.stage = exact
	}
	return p
}

// late reports whether the run is nearly over.
func (p *Phases) late() bool { return float64(p.epoch) >= mostAlone*float64(p.last) }

// Alone reports whether the epoch to come trains without ghosts.
func (p *Phases) Alone() bool { return p.stage == timing || p.stage == alone }

// Over reports whether all epochs to come are exact. Those of nil are none of its.
func (p *Phases) Over() bool { return p != nil && p.stage == exact }

// Evaluated takes the loss of the whole graph with the weights that the epoch to come
// starts from, the same on all ranks, and the seconds that it took to know it on this one.
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

// Ended takes the seconds of an epoch on this rank, and its loss, which is the same on all
// ranks. due reports, the same on all ranks, whether they must now agree on the largest of
// both seconds and call Agreed.
func (p *Phases) Ended(seconds, loss float64) (report [2]float64, due bool) {
	p.epoch++
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

// Agreed takes the largest report of Ended over all ranks. It returns a line about the next
// stage.
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
	return fmt.Sprintf("refresh auto: an epoch takes %.4f s without ghosts and %s %.4f s with them -> %s", report[0], what, report[1], follows)
}

// Finish ends the epochs alone. It reports whether there were more to come.
func (p *Phases) Finish() bool {
	was := !p.Over()
	p.stage = exact
	return was
}

// steady returns the median of seconds but the first, 0 where there are no others.
func steady(seconds []float64) float64 {
	if len(seconds) < 2 {
		return 0
	}
	return median(seconds[1:])
}
