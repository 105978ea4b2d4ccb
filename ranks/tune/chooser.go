package tune

import (
	"slices"

	"siafu/ranks/link"
)

// Chooser chooses a codec for each epoch. After an epoch, ranks call Epoch; when
// it asks for it they measure, agree, and call Agreed. In the order of epochs:
//
//   - gauging: rows are sampled, and then links and codecs are timed;
//   - warming: what looks best runs for the first time, and shows what hides its
//     messages;
//   - trying: the contenders run in turns, a few epochs each;
//   - settled: the best runs. When the epochs of a whole window were far from
//     what they were expected to be, all begins again.
type Chooser struct {
	names   []string // candidates, the most exact first
	traffic Traffic
	epoch   int // the last one that has been
	last    int // the last one of the run

	phase   phase
	current int // candidate

	model  *Model
	costs  [][]Cost // by candidate and exchange
	hidden []float64
	base   float64 // seconds of an epoch without its exchanges

	contenders []int
	rounds     int
	measured   [][]float64 // by contender

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

// A trial is of mostContenders, each mostRounds epochs, and takes at most
// trialShare of the epochs that are left.
const (
	mostContenders = 3
	mostRounds     = 3
	trialShare     = 0.25
)

// What is within alike of the fastest is as good, and then the most exact is
// taken; predictions may be wrong by doubt before they decide. Who is predicted
// to take hopeless times as long as the best is not tried, and nothing is where
// the most exact of all is certain to be as good.
const (
	alike    = 1.05
	doubt    = 1.10
	certain  = 1.02
	hopeless = 1.5
)

// A settled codec is looked at again when the median of firstWindow epochs is
// off times as long as expected, or as short, each time after twice as many
// epochs as the last time.
const (
	firstWindow = 10
	off         = 1.5
)

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
		c.current = c.best(c.predict(seconds))
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
// took so many.
func (c *Chooser) predict(seconds float64) []float64 {
	c.base = max(seconds-c.model.Seconds(c.costs[c.current], c.hidden), 0)
	predicted := make([]float64, len(c.names))
	for i := range predicted {
		predicted[i] = c.base + c.model.Seconds(c.costs[i], c.hidden)
	}
	return predicted
}

// best is the candidate with the least seconds.
func (c *Chooser) best(seconds []float64) int {
	return slices.Index(seconds, slices.Min(seconds))
}

// compare ends warming: it chooses who is tried, or settles by predictions where
// the run is too short for that.
func (c *Chooser) compare(seconds float64) string {
	predicted := c.predict(seconds)
	c.contenders = contend(predicted)
	c.rounds = min(mostRounds, int(trialShare*float64(c.last-c.epoch))/len(c.contenders))
	if len(c.contenders) == 1 || c.rounds == 0 {
		c.settle(c.contenders[0], 0)
		return c.said(predicted, "-> "+c.Codec())
	}
	c.phase, c.measured = trying, make([][]float64, len(c.contenders))
	c.current = c.contenders[0]
	return c.said(predicted, "trying "+c.list(c.contenders))
}

// contend is who is tried: the most exact of those that may be as fast as the
// fastest, and then the fastest.
func contend(predicted []float64) []int {
	least := slices.Min(predicted)
	if predicted[0] <= certain*least {
		return []int{0}
	}
	order := make([]int, len(predicted))
	for i := range order {
		order[i] = i
	}
	first := slices.IndexFunc(predicted, func(s float64) bool { return s <= doubt*least })
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case i == j || predicted[i] == predicted[j]:
			return i - j
		case i == first || j != first && predicted[i] < predicted[j]:
			return -1
		}
		return 1
	})
	n := 1
	for n < min(len(order), mostContenders) && predicted[order[n]] <= hopeless*least {
		n++
	}
	return order[:n]
}

// try takes an epoch of a contender and goes on to the next.
func (c *Chooser) try(seconds float64) string {
	at := slices.Index(c.contenders, c.current)
	c.measured[at] = append(c.measured[at], seconds)
	next := (at + 1) % len(c.contenders)
	if len(c.measured[next]) < c.rounds {
		c.current = c.contenders[next]
		return ""
	}
	won := c.winner()
	said := c.results()
	c.settle(c.contenders[won], median(c.measured[won]))
	return said + " -> " + c.Codec()
}

// winner is the most exact of the contenders that are as fast as the fastest: in
// the median of their epochs or in their best. On a machine that does other
// things too, only what differs in both differs.
func (c *Chooser) winner() int {
	fastest := 0
	for i := range c.measured {
		if median(c.measured[i]) < median(c.measured[fastest]) {
			fastest = i
		}
	}
	won, by := fastest, c.measured[fastest]
	for i, m := range c.measured {
		if c.contenders[i] < c.contenders[won] && (median(m) <= alike*median(by) || slices.Min(m) <= alike*slices.Min(by)) {
			won = i
		}
	}
	return won
}

func (c *Chooser) settle(candidate int, expected float64) {
	c.phase, c.current, c.expected, c.window = settled, candidate, expected, c.window[:0]
}

// watch compares a window of epochs with what was expected.
func (c *Chooser) watch(seconds float64) string {
	if c.expected == 0 {
		c.expected = seconds
		return ""
	}
	if seconds <= off*c.expected && seconds*off >= c.expected {
		return ""
	}
	said := c.changed(seconds)
	c.phase, c.length = gauging, 2*c.length
	return said
}
