package engine

import "time"

// linger limits how long a rank of bounded asynchrony waits per epoch, in total, for rows
// and weights of the previous epoch before it continues with older ones. The limit is a
// multiple of the mean duration of an epoch without such waits. The rank's first epoch has
// no limit, unless the multiple is 0.
//
// Design note: the limit applies to an epoch and not to each wait, so that a straggler
// costs the others its limit once, for any number of gathers per epoch.
type linger struct {
	multiple float64
	now      func() time.Time // nil: time.Now
	start    time.Time        // of the stretch
	epochs   int              // that the rank has finished in it
	waited   time.Duration    // before the epoch under way
	spent    time.Duration    // in the epoch under way, up to since
	since    time.Time        // zero unless the rank waits
}

// lingerRest is between two looks for messages while a rank waits.
const lingerRest = 20 * time.Microsecond

// time is the present.
func (g *linger) time() time.Time {
	if g.now != nil {
		return g.now()
	}
	return time.Now()
}

// hold says that nothing can be done but with old rows or weights, and rest that
// something else has been found.
func (g *linger) hold() {
	if g.since.IsZero() && g.multiple > 0 {
		g.since = g.time()
	}
}

func (g *linger) rest() {
	if !g.since.IsZero() {
		g.spent += g.time().Sub(g.since)
		g.since = time.Time{}
	}
}

// next ends an epoch of the rank.
func (g *linger) next() {
	if !g.since.IsZero() {
		g.rest()
		defer g.hold()
	}
	g.epochs++
	g.waited += g.spent
	g.spent = 0
}

// limit is that of the epoch under way; false where it has none.
func (g *linger) limit() (time.Duration, bool) {
	if g.multiple > 0 && g.epochs == 0 {
		return 0, false
	}
	worked := g.time().Sub(g.start) - g.waited - g.spent
	return time.Duration(g.multiple * float64(worked) / float64(max(g.epochs, 1))), true
}

// over reports whether the rank continues with what is there.
func (g *linger) over() bool {
	limit, ok := g.limit()
	spent := g.spent
	if !g.since.IsZero() {
		spent += g.time().Sub(g.since)
	}
	return ok && spent >= limit
}

// until is when it will be over, while the rank waits; zero where it does not,
// or waits without end.
func (g *linger) until() time.Time {
	limit, ok := g.limit()
	if !ok || g.since.IsZero() {
		return time.Time{}
	}
	return g.since.Add(limit - g.spent)
}
