package halo

import (
	"slices"
	"time"

	"siafu/halo/codec"
	"siafu/kernels"
)

// Portable is a Source that can go on elsewhere, where an epoch begins, as a new one
// to which its part takes along what it knows.
type Portable interface {
	Source
	// Record lets the source keep what Pack needs. To be called before the first
	// transfer.
	Record()
	// Pack is what the source knows at the beginning of an epoch. It stands until
	// the epoch's transfers begin, and is asked for once in each epoch.
	Pack(epoch int) Luggage
	// Unpack has a new source go on with it, after Record. Collective.
	Unpack(l Luggage) error
}

var _ Portable = Always{}

// Luggage is what a part's transfers know beside the rows of the day. Rows that left
// in the epoch before and are used in this one are to leave again; what codecs have
// lost is from before they left.
type Luggage struct {
	Losts []Lost
	Sent  []Sent
}

// Record implements Portable. Nothing outlives its epoch but what codecs lose.
func (a Always) Record() {}

// Pack implements Portable.
func (a Always) Pack(int) Luggage { return Luggage{Losts: a.Exchange.Losts()} }

// Unpack implements Portable.
func (a Always) Unpack(l Luggage) error {
	a.Exchange.Remember(l.Losts)
	return nil
}

// Lost is what a codec that feeds errors back has lost of the rows of a layer.
type Lost struct {
	Layer, Cols int
	Backward    bool
	Rows        []float32
}

// Losts is a copy of what has been lost so far; nil where errors are not fed back.
func (e *Exchange) Losts() []Lost {
	if e.chunked == nil {
		return nil
	}
	var list []Lost
	for s, l := range e.chunked.losts {
		list = append(list, Lost{s.layer, s.cols, s.backward, l.copy(e.ops)})
	}
	return list
}

// Remember lets rows be corrected by what an exchange elsewhere has lost of them. To
// be called before the first Begin.
func (e *Exchange) Remember(list []Lost) {
	for _, l := range list {
		e.chunked.losts[series{l.Layer, l.Cols, l.Backward}] = &lost{rows: slices.Clone(l.Rows)}
	}
}

// Sent is the rows that left in an exchange, in the order in which they go out, with
// the key that it had.
type Sent struct {
	Key  Key
	Cols int
	Rows []float32
}

// Recorder is an Observer that keeps what has left in the exchange before, for
// BeginAgain.
type Recorder struct{ Sent }

// Leaving implements Observer.
func (r *Recorder) Leaving(k Key, rows codec.Rows, _ int) {
	r.Key, r.Cols, r.Rows = k, rows.Cols, slices.Grow(r.Rows[:0], rows.Len*rows.Cols)
	for i := range rows.Len {
		r.Rows = append(r.Rows, rows.Row(i)...)
	}
}

// Arrived implements Observer.
func (r *Recorder) Arrived(Key, time.Duration, time.Duration) {}

// BeginAgain is that of its exchange. Collective.
func (t *Transfer) BeginAgain(s Sent) error {
	t.leaving = s.Key.Epoch
	return t.Exchange.BeginAgain(s)
}

// BeginAgain begins an exchange that sends what another one has sent, in the same
// direction and to the same bits. The rows stand until its End. Collective.
func (e *Exchange) BeginAgain(s Sent) error {
	k := s.Key
	if k.Backward {
		kernels.Write(e.ops, e.Ghosts(s.Cols), s.Rows)
		return e.BeginBackward(s.Cols, k)
	}
	e.enter(forward, s.Cols)
	k.From = e.comm.Rank()
	if e.ops.Remote() {
		e.staged.ready()
	}
	e.way = way{
		out:      codec.Rows{X: s.Rows, Cols: s.Cols, Len: len(e.plan.SendRows), IDs: e.sendIDs, Sums: e.sendSums},
		in:       e.arriving(s.Cols),
		outStart: e.plan.SendStart, inStart: e.plan.RecvStart,
	}
	return e.begin(k)
}
