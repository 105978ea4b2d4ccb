package tune

import (
	"math"
	"slices"

	"siafu/ranks/world/link"
)

// Chooser chooses a codec for each epoch. After an epoch, ranks call Epoch; when
// it asks for it they measure, agree, and call Agreed. In the order of epochs:
//
//   - gauging: rows are sampled, and then links and codecs are timed;
//   - warming: what looks best runs for the first time, and shows what hides its
//     messages;
//   - trying: the contenders run in turns, a few epochs each, and then those who
//     may be better after all;
//   - settled: the best runs. When the epochs of a whole window were far from
//     what they were expected to be, all begins again.
type Chooser struct {
	names   []string // candidates, the most exact first
	traffic Traffic
	epoch   int // the last one that has been
	last    int // the last one of the run

	phase   phase
	current int // candidate

	gauged  int // candidate that was used while gauging, and the epoch's seconds
	seconds float64
	warm    bool // other epochs had been before

	model  *Model
	costs  [][]Cost // by candidate and exchange
	hidden []float64

	trial trial

	window   []float64 // of this rank, since the last look
	length   int       // epochs of a window
	expected float64   // seconds of an epoch, 0: those of the first window
}

type phase int

const (
	gauging phase = iota
	warming
	trying
	settled
)

// A settled codec is looked at again when the median of firstWindow epochs is
// off times as long as expected, or as short, each time after twice as many
// epochs as the last time.
const (
	firstWindow = 10
	off         = 1.5
)

// Links may be doubtfulLink times as slow as they were measured: messages of all
// ranks at once disturb one another, and processors have other things to do.
// slacks are the factors that are looked for in what epochs take; those below 1
// stand for chunks that are encoded and decoded while others travel.
const doubtfulLink = 2

var slacks = []float64{1, 0.5, 0.75, 1.5, 2, 3, 4, 6, 8}

// NewChooser chooses among codecs, the most exact first, for the epochs first to
// last. It begins with the most exact.
func NewChooser(names []string, t Traffic, first, last int) *Chooser {
	return &Chooser{names: names, traffic: t, epoch: first - 1, last: last, length: firstWindow}
}

// Codec is the name of the next epoch's, or of the one that runs.
func (c *Chooser) Codec() string { return c.names[c.current] }

// Gauging tells whether rows of this epoch are to be sampled, and Gauge called
// after it.
func (c *Chooser) Gauging() bool { return c.phase == gauging }

// Epoch takes the seconds of an epoch on this rank. due tells, the same on all
// ranks, whether they are now to agree on the largest report and call Agreed.
func (c *Chooser) Epoch(seconds float64) (report float64, due bool) {
	c.epoch++
	if c.phase != settled {
		return seconds, true
	}
	c.window = append(c.window, seconds)
	if len(c.window) < c.length {
		return 0, false
	}
	report = median(c.window)
	c.window = c.window[:0]
	return report, true
}

// Gauge takes what was measured after an epoch of gauging: links, and costs
// [candidates][exchanges] of the slowest rank, both the same on all ranks.
func (c *Chooser) Gauge(links *link.Table, costs [][]Cost) {
	c.model, c.costs = NewModel(c.traffic, links), costs
}

// Agreed takes the seconds of an epoch of the slowest rank, and how long messages
// of each exchange were hidden by the work of the rank that hid them least. It
// returns a line that says what was decided, "" for nothing.
func (c *Chooser) Agreed(seconds float64, hidden []float64) string {
	switch c.phase {
	case gauging:
		c.hidden, c.phase = nil, warming
		c.gauged, c.seconds = c.current, seconds
		predicted := c.predict(seconds, 1)
		c.current = slices.Index(predicted, slices.Min(predicted))
	case warming:
		c.hidden = hidden
		return c.compare(seconds)
	case trying:
		return c.try(seconds)
	case settled:
		return c.watch(seconds)
	}
	return ""
}

// predict is the seconds of an epoch with each candidate, where the current one
// took so many and links are slower than measured by a factor.
func (c *Chooser) predict(seconds, slack float64) []float64 {
	base := max(seconds-c.model.Seconds(c.costs[c.current], c.hidden, slack), 0)
	return c.on(base, slack)
}

// on is the same, where an epoch without exchanges takes base.
func (c *Chooser) on(base, slack float64) []float64 {
	predicted := make([]float64, len(c.names))
	for i := range predicted {
		predicted[i] = base + c.model.Seconds(c.costs[i], c.hidden, slack)
	}
	return predicted
}

// compare ends warming: it chooses who is tried, or settles by predictions where
// the run is too short for that, or where the most exact candidate is as good as
// any, even if links are worse than they look, and nothing speaks against that.
func (c *Chooser) compare(seconds float64) string {
	predicted, worse := c.predict(seconds, 1), c.predict(seconds, doubtfulLink)
	contenders := contend(predicted)
	refuted := c.warm && c.seconds > behind*predicted[c.gauged]
	switch {
	case predicted[0] <= alike*slices.Min(predicted) && worse[0] <= alike*slices.Min(worse) && !refuted:
		c.settle(0, predicted[0])
	case !c.trial.begin(contenders, len(c.names), c.last-c.epoch):
		c.settle(contenders[0], 0)
	default:
		c.phase, c.current = trying, contenders[0]
		return c.said(predicted, "trying "+c.list(contenders))
	}
	return c.said(predicted, "-> "+c.Codec())
}

// try takes an epoch of a contender and goes on to the next.
func (c *Chooser) try(seconds float64) string {
	next := c.trial.take(c.current, seconds)
	if next < 0 {
		next = c.another()
	}
	if next >= 0 {
		c.current = next
		return ""
	}
	said := c.results()
	won := c.trial.winner()
	c.settle(won, median(c.trial.measured[won]))
	return said + " -> " + c.Codec()
}

// another is a candidate that what was measured lets expect to be better than the
// winner so far, and that is tried then; -1: none.
func (c *Chooser) another() int {
	won := c.trial.winner()
	predicted := c.learnt()
	best, at := predicted[won], -1
	for i, s := range predicted {
		switch {
		case len(c.trial.measured[i]) > 0:
		case i < won && s <= alike*best: // more exact, and as fast
			return c.trial.extend(i)
		case i > won && s*alike <= best && (at < 0 || s < predicted[at]):
			at = i
		}
	}
	return c.trial.extend(at)
}

// learnt is what to expect of all candidates with the speed of links, and the
// work beside, that explain best what was measured.
func (c *Chooser) learnt() []float64 {
	var best []float64
	least := math.Inf(1)
	for _, slack := range slacks {
		work := c.on(0, slack)
		base := max(c.trial.mean(work), 0)
		if off := c.trial.squares(base, work); off < least {
			least, best = off, c.on(base, slack)
		}
	}
	return best
}

func (c *Chooser) settle(candidate int, expected float64) {
	c.phase, c.current, c.expected, c.window = settled, candidate, expected, c.window[:0]
}

// watch compares a window of epochs with what was expected. Shorter ones are a
// reason to look again only where a more exact codec might do now.
func (c *Chooser) watch(seconds float64) string {
	shorter := seconds*off < c.expected
	switch {
	case c.expected == 0 || shorter && c.current == 0:
		c.expected = seconds
		return ""
	case !shorter && seconds <= off*c.expected:
		return ""
	}
	said := c.changed(seconds)
	c.phase, c.length, c.warm = gauging, 2*c.length, true
	return said
}
