package tune

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Chooser chooses a codec for each epoch of a run. Its states, in their order:
//
//	warming   the first epoch runs through the most exact candidate
//	gauging   one more does, and its exchanges are measured: they estimate an
//	          epoch with every other candidate
//	trying    the candidate that promises most runs for some epochs, and then the
//	          next one, until none promises to be better than the best so far or
//	          a quarter of the run has gone
//	settled   the best one runs; when epochs become much longer or shorter,
//	          gauging begins again
//
// Design note: links are not measured apart from the exchanges. What a rank has
// waited for rows in an epoch knows of all that shares the link, of the order of
// messages and of the processors that carry them; a link that was measured while
// nothing else ran does not. It also bounds what any codec can gain.
type Chooser struct {
	names []string // candidates, the most exact first
	epoch int      // the last one that has ended
	last  int      // the last one of the run

	state   state
	current int // candidate that epochs run through

	predicted []float64   // by candidate: seconds of an epoch
	measured  [][]float64 // by candidate: seconds of its epochs, at most rounds of them
	budget    int         // epochs that trials may still take

	recent   []float64 // seconds on this rank since ranks have last agreed
	window   int       // epochs between two agreements, once settled
	expected float64   // seconds of an epoch, once settled; 0: those of the first window
}

type state int

const (
	warming state = iota
	gauging
	trying
	settled
)

const (
	rounds      = 3    // epochs of a trial
	share       = 0.25 // of the epochs that are left, for all trials
	alike       = 1.03 // times as long is as good: then the more exact candidate is better
	firstWindow = 10   // epochs; each time that gauging begins again it doubles
	changed     = 1.5  // times as long, or as short, as expected: gauging begins again
)

// NewChooser chooses among codecs, the most exact first, for the epochs first to
// last. It begins with the most exact.
func NewChooser(names []string, first, last int) *Chooser {
	return &Chooser{names: names, epoch: first - 1, last: last, window: firstWindow}
}

// Current returns the number of the candidate for the next epoch, or for the one that
// runs.
func (c *Chooser) Current() int { return c.current }

// Gauging reports whether the exchanges of this epoch are to be measured.
func (c *Chooser) Gauging() bool { return c.state == gauging }

// Ended takes the seconds of an epoch on this rank. due reports, the same on all ranks,
// whether they must now agree on the largest report and call Agreed.
func (c *Chooser) Ended(seconds float64) (report float64, due bool) {
	c.epoch++
	c.recent = append(c.recent, seconds)
	if c.state == settled && len(c.recent) < c.window {
		return 0, false
	}
	report = median(c.recent)
	c.recent = c.recent[:0]
	return report, true
}

// Agreed takes the largest report of all ranks. After a gauging epoch it also takes the
// estimated seconds of its exchanges with each candidate: encoding, decoding and waiting,
// on the slowest rank. It returns a line about the decision, "" for none.
func (c *Chooser) Agreed(seconds float64, exchanges []float64) string {
	switch c.state {
	case warming:
		c.state = gauging
	case gauging:
		return c.settleByEstimate(seconds, exchanges)
	case trying:
		return c.try(seconds)
	case settled:
		return c.watch(seconds)
	}
	return ""
}

// settleByEstimate ends gauging. Where too few epochs are left for a trial it settles by
// what is predicted.
func (c *Chooser) settleByEstimate(seconds float64, exchanges []float64) string {
	n := len(c.names)
	c.predicted, c.measured = make([]float64, n), make([][]float64, n)
	for i, s := range exchanges {
		c.predicted[i] = max(seconds-exchanges[0], 0) + s
	}
	c.measured[0] = []float64{seconds}
	c.budget = int(share * float64(c.last-c.epoch))
	said := fmt.Sprintf("codec auto: epoch %d: rows take %.3g s of %.3g; predicted s/epoch: %s", c.epoch, exchanges[0], seconds, c.list(c.predicted))
	if c.next() {
		return said + "; trying " + c.names[c.current]
	}
	return said + c.settle(c.predicted)
}

// try takes an epoch of the current candidate.
func (c *Chooser) try(seconds float64) string {
	c.measured[c.current] = append(c.measured[c.current], seconds)
	if len(c.measured[c.current]) < rounds || c.next() {
		return ""
	}
	tried := c.tried()
	return fmt.Sprintf("codec auto: epoch %d: measured s/epoch: %s", c.epoch, c.list(tried)) + c.settle(tried)
}

// tried is what epochs with each candidate have taken, infinity without any.
func (c *Chooser) tried() []float64 {
	seconds := make([]float64, len(c.names))
	for i, m := range c.measured {
		if seconds[i] = math.Inf(1); len(m) > 0 {
			seconds[i] = typical(m)
		}
	}
	return seconds
}

// next begins the trial of the candidate that promises most. It is false where
// none promises to be better than the best so far, or no epochs are left for it.
func (c *Chooser) next() bool {
	tried := c.tried()
	won := best(tried)
	at, least := -1, math.Inf(1)
	for i, m := range c.measured {
		limit := tried[won] / alike
		switch {
		case i == won || len(m) == rounds:
			continue
		case len(m) > 0:
			limit = tried[won] * changed // the epoch of gauging alone may have been long by chance
		case i < won:
			limit = tried[won] * alike // who is more exact need not be faster
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

// promise is what an epoch with a candidate may take: what it has taken, else
// what is predicted, and as much more as it took others. Part of what ranks wait
// is for each other, and fewer bytes do not shorten that. A prediction that was
// right of a candidate which was not tried counts as much as a trial.
func (c *Chooser) promise(candidate int, tried []float64) float64 {
	if len(c.measured[candidate]) > 0 {
		return tried[candidate]
	}
	missed, n := 0.0, 1.0
	for i, m := range c.measured[1:] { // of the first all others were predicted
		if len(m) > 0 {
			missed, n = missed+tried[1+i]-c.predicted[1+i], n+1
		}
	}
	return c.predicted[candidate] + missed/n
}

// settle takes the best by the seconds of an epoch with each candidate.
func (c *Chooser) settle(seconds []float64) string {
	c.state, c.current, c.expected = settled, best(seconds), 0
	return " -> " + c.names[c.current]
}

// watch compares a window of epochs with the first one. Shorter epochs are a
// reason to look again only where a more exact candidate might do now.
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
	c.state, c.current, c.window = gauging, 0, 2*c.window
	return said
}

// list writes the seconds of candidates, of those that have any.
func (c *Chooser) list(seconds []float64) string {
	var words []string
	for i, s := range seconds {
		if !math.IsInf(s, 1) {
			words = append(words, fmt.Sprintf("%s %.3g", c.names[i], s))
		}
	}
	return strings.Join(words, ", ")
}

// best returns the most exact candidate of those that are as fast as the fastest.
func best(seconds []float64) int {
	least := slices.Min(seconds)
	return slices.IndexFunc(seconds, func(s float64) bool { return s <= alike*least })
}

// typical is what epochs are compared by: half way between the median and the
// least, since a machine that does other things too only makes them longer.
func typical(seconds []float64) float64 { return (median(seconds) + slices.Min(seconds)) / 2 }

// median of one number or more, which it sorts.
func median(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
