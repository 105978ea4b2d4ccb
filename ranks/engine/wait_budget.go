package engine

import "time"

// waitBudget limits the time per epoch that a rank of bounded asynchrony waits for rows and weights
// of the previous epoch. Afterwards it continues with older ones. The limit is a multiple of the
// mean duration of an epoch without such waits. The first epoch has no limit, unless the multiple
// is 0.
//
// Design note: the limit applies to an epoch and not to each wait, so that a straggler
// costs the others its limit once, for any number of gathers per epoch.
type waitBudget struct {
	multiple float64
	now      func() time.Time
	start    time.Time     // of the stretch
	epochs   int           // epochs that the rank has finished in the stretch
	waited   time.Duration // total waits before the current epoch
	spent    time.Duration // waits in the current epoch before since
	since    time.Time     // start of the current wait; zero: the rank does not wait
}

// minPause and maxPause are the first and the longest pause between two polls for messages while a
// rank waits.
const (
	minPause = 20 * time.Microsecond
	maxPause = 200 * time.Microsecond
)

// startWait starts a wait, when all available work needs old rows or weights. endWait ends the wait,
// when there is other work.
func (g *waitBudget) startWait() {
	if g.since.IsZero() && g.multiple > 0 {
		g.since = g.now()
	}
}

func (g *waitBudget) endWait() {
	if !g.since.IsZero() {
		g.spent += g.now().Sub(g.since)
		g.since = time.Time{}
	}
}

// nextEpoch ends an epoch of the rank.
func (g *waitBudget) nextEpoch() {
	if !g.since.IsZero() {
		g.endWait()
		defer g.startWait()
	}
	g.epochs++
	g.waited += g.spent
	g.spent = 0
}

// limit returns the limit of the current epoch; false without a limit.
func (g *waitBudget) limit() (time.Duration, bool) {
	if g.multiple > 0 && g.epochs == 0 {
		return 0, false
	}
	worked := g.now().Sub(g.start) - g.waited - g.spent
	return time.Duration(g.multiple * float64(worked) / float64(max(g.epochs, 1))), true
}

// exhausted reports whether the rank continues with old rows or weights.
func (g *waitBudget) exhausted() bool {
	limit, ok := g.limit()
	spent := g.spent
	if !g.since.IsZero() {
		spent += g.now().Sub(g.since)
	}
	return ok && spent >= limit
}

// deadline returns the end of the current wait; zero if the rank does not wait, or has no
// limit.
func (g *waitBudget) deadline() time.Time {
	limit, ok := g.limit()
	if !ok || g.since.IsZero() {
		return time.Time{}
	}
	return g.since.Add(limit - g.spent)
}
