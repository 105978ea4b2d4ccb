package tune

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"siafu/ranks/runfolder"
)

// Chooser chooses a codec for each epoch of a run. Its states, in their order:
//
//	warming   the first epoch uses the most exact candidate
//	measuring the next epoch uses the same candidate; the measured exchanges give an
//	          estimate of the time of an epoch with each other candidate
//	trying    the most promising candidate runs for some epochs, and then the next
//	          one, until none promises to be better than the best so far or the
//	          trials have used a quarter of the remaining epochs
//	settled   the best candidate runs; when epochs become much longer or shorter,
//	          measuring begins again
//
// Design note: links are not measured on their own. The time that a rank waits for rows in an
// epoch depends on everything that shares the link, on the order of messages and on the processors
// that carry them. A measurement of an idle link would miss all of this. The waiting time also
// bounds the gain of any codec.
type Chooser struct {
	names []string // candidates, the most exact first
	epoch int      // the last epoch that has ended
	last  int      // the last epoch of the run

	state   state
	current int   // the current candidate
	plan    []int // candidates of the epochs, if they are given

	predicted []float64   // by candidate: estimated seconds of an epoch
	measured  [][]float64 // by candidate: measured seconds of its epochs, at most rounds
	budget    int         // epochs left for trials

	recent   []float64 // seconds of epochs on this rank since the last agreement
	window   int       // epochs between two agreements in state settled
	expected float64   // expected seconds of an epoch in state settled; 0: set by the next window
}

type state int

const (
	warming state = iota
	measuring
	trying
	settled
)

const (
	rounds      = 3    // epochs of a trial
	share       = 0.25 // fraction of the remaining epochs for all trials
	similar     = 1.03 // below this ratio of times, the more exact candidate is better
	firstWindow = 10   // epochs; the window doubles whenever measuring begins again
	changed     = 1.5  // above this ratio of expected and measured time, measuring begins again
)

// NewChooser returns a chooser among codecs, ordered by decreasing accuracy, for the epochs first
// to last. It begins with the most exact codec, or has settled on the given one.
func NewChooser(names []string, on string, first, last int) *Chooser {
	c := &Chooser{names: names, epoch: first - 1, last: last, window: firstWindow}
	if at := slices.Index(names, on); at >= 0 {
		c.state, c.current = settled, at
	}
	return c
}

// Follow makes the chooser use the codecs of another run, by epoch. Its last one serves all later epochs.
func (c *Chooser) Follow(codecs []string) {
	for _, name := range codecs {
		c.plan = append(c.plan, max(slices.Index(c.names, name), 0))
	}
	c.state = settled
	c.follow()
}

// follow sets the candidate of the next epoch by the plan. It returns false without a plan.
func (c *Chooser) follow() bool {
	if c.plan == nil {
		return false
	}
	c.current = c.plan[min(c.epoch, len(c.plan)-1)]
	return true
}

// Settled reports whether the choice is made.
func (c *Chooser) Settled() bool { return c.state == settled }

// Current returns the index of the candidate for the current or the next epoch.
func (c *Chooser) Current() int { return c.current }

// Measuring reports whether the exchanges of this epoch must be measured.
func (c *Chooser) Measuring() bool { return c.state == measuring }

// Ended records the seconds of an epoch on this rank. If due, seconds is the median of the
// epochs since the last agreement, and all ranks must call Agreed with the maximum of it over
// ranks. due is equal on all ranks.
func (c *Chooser) Ended(epoch float64) (seconds float64, due bool) {
	c.epoch++
	if c.follow() {
		return 0, false
	}
	c.recent = append(c.recent, epoch)
	if c.state == settled && len(c.recent) < c.window {
		return 0, false
	}
	seconds = runfolder.Median(c.recent)
	c.recent = c.recent[:0]
	return seconds, true
}

// Agreed evaluates the seconds on the slowest rank. After a measuring epoch it also needs the
// estimated seconds of the exchanges with each candidate: encoding, decoding and waiting, on the
// slowest rank. It returns a line about the decision, or "".
func (c *Chooser) Agreed(seconds float64, exchanges []float64) string {
	switch c.state {
	case warming:
		c.state = measuring
	case measuring:
		return c.settleByEstimate(seconds, exchanges)
	case trying:
		return c.try(seconds)
	case settled:
		return c.watch(seconds)
	}
	return ""
}

// settleByEstimate ends the state measuring. It begins a trial, or settles by the estimates if too few epochs
// are left.
func (c *Chooser) settleByEstimate(seconds float64, exchanges []float64) string {
	n := len(c.names)
	c.predicted, c.measured = make([]float64, n), make([][]float64, n)
	for i, s := range exchanges {
		c.predicted[i] = max(seconds-exchanges[0], 0) + s
	}
	c.measured[0] = []float64{seconds}
	c.budget = int(share * float64(c.last-c.epoch))
	said := fmt.Sprintf("codec auto: epoch %d: rows take %.3g s of %.3g; predicted s/epoch: %s", c.epoch,
		exchanges[0], seconds, c.list(c.predicted))
	if c.next() {
		return said + "; trying " + c.names[c.current]
	}
	return said + c.settle(c.predicted)
}

// try records an epoch of the current candidate.
func (c *Chooser) try(seconds float64) string {
	c.measured[c.current] = append(c.measured[c.current], seconds)
	if len(c.measured[c.current]) < rounds || c.next() {
		return ""
	}
	tried := c.tried()
	return fmt.Sprintf("codec auto: epoch %d: measured s/epoch: %s", c.epoch, c.list(tried)) + c.settle(tried)
}

// tried returns the typical seconds of epochs with each candidate, or +∞ without epochs.
func (c *Chooser) tried() []float64 {
	seconds := make([]float64, len(c.names))
	for i, m := range c.measured {
		if seconds[i] = math.Inf(1); len(m) > 0 {
			seconds[i] = typical(m)
		}
	}
	return seconds
}

// next begins the trial of the most promising candidate. It returns false if no candidate promises
// to be better than the best so far, or if too few epochs are left.
func (c *Chooser) next() bool {
	tried := c.tried()
	won := best(tried)
	at, least := -1, math.Inf(1)
	for i, m := range c.measured {
		limit := tried[won] / similar
		switch {
		case i == won || len(m) == rounds:
			continue
		case len(m) > 0:
			limit = tried[won] * changed // the single measuring epoch may have been slow by chance
		case i < won:
			limit = tried[won] * similar // a more exact candidate need not be faster
		}
		if s := c.promise(i, tried); s <= limit && s < least {
			at, least = i, s
		}
	}
	if at < 0 || c.budget < rounds {
		return false
	}
	c.budget -= rounds
	c.state, c.current = trying, at
	return true
}

// promise returns the expected seconds of an epoch with a candidate. This is the measured time if
// there is one. If not, it is the estimate plus the mean error of the estimates of the other
// candidates: ranks partly wait for each other, and fewer bytes do not shorten this wait. The mean
// includes one error of 0, in favour of the estimate.
func (c *Chooser) promise(candidate int, tried []float64) float64 {
	if len(c.measured[candidate]) > 0 {
		return tried[candidate]
	}
	missed, n := 0.0, 1.0
	for i, m := range c.measured[1:] { // candidate 0 has no estimate: the others derive from it
		if len(m) > 0 {
			missed, n = missed+tried[1+i]-c.predicted[1+i], n+1
		}
	}
	return c.predicted[candidate] + missed/n
}

// settle chooses the best candidate by the seconds of an epoch.
func (c *Chooser) settle(seconds []float64) string {
	c.state, c.current, c.expected = settled, best(seconds), 0
	return " -> " + c.names[c.current]
}

// watch compares a window of epochs with the first window. Shorter epochs are a reason to measure
// again only if there is a more exact candidate.
func (c *Chooser) watch(seconds float64) string {
	shorter := seconds*changed < c.expected
	switch {
	case c.expected == 0 || shorter && c.current == 0:
		c.expected = seconds
		return ""
	case !shorter && seconds <= changed*c.expected:
		return ""
	}
	said := fmt.Sprintf("codec auto: epoch %d: %.3g s/epoch with %s over %d epochs where %.3g was expected; measuring again",
		c.epoch, seconds, c.names[c.current], c.window, c.expected)
	c.state, c.current, c.window = measuring, 0, 2*c.window
	return said
}

// list formats the finite seconds of candidates.
func (c *Chooser) list(seconds []float64) string {
	var words []string
	for i, s := range seconds {
		if !math.IsInf(s, 1) {
			words = append(words, fmt.Sprintf("%s %.3g", c.names[i], s))
		}
	}
	return strings.Join(words, ", ")
}

// best returns the most exact candidate with about the time of the fastest.
func best(seconds []float64) int {
	least := slices.Min(seconds)
	return slices.IndexFunc(seconds, func(s float64) bool { return s <= similar*least })
}

// typical returns the mean of the median and the minimum, because other load on a machine only
// makes epochs longer.
func typical(seconds []float64) float64 { return (runfolder.Median(seconds) + slices.Min(seconds)) / 2 }
