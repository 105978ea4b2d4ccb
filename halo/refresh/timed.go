package refresh

import (
	"sync"

	"siafu/halo"
	"siafu/halo/codec"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Timed is a source with stored rows and a timetable. Each epoch sends some rows, which are used
// some epochs later. Except Previous, the policies for synchronous passes are timetables.
//
// Take stores the rows that are due in an epoch. If Offer is about to reuse the batch that has these
// rows, Offer stores the rows first.
type Timed struct {
	timetable
	store         *halo.Histories
	parts         []*halo.Part
	histories     map[slotKey]*history
	list          []*history
	selectedEpoch int // the epoch for which the part has been selected
	inTransit     transit[*halo.Batch]

	mu sync.Mutex // guards selectedEpoch
}

var _ halo.Collective = (*Timed)(nil)

// timetable is a policy. Zero fields are as in always.
type timetable struct {
	// groups is the number of parts that are sent separately, at least one. group returns a
	// vertex's part; nil: there is one.
	groups int
	group  func(id uint32) int
	// leaving returns the part that is sent in a slot, or -1.
	leaving func(at halo.Slot) int
	// lag is the number of epochs after which rows are used.
	lag int
	// blend returns how stored rows change in an epoch; due: new rows are due.
	blend func(backward, due bool) blend
	// gradsPersist means that gradients remain stored like rows, and are added in every epoch.
	gradsPersist bool
	// selector returns the vertices of the only part in an epoch, before its first rows are
	// sent.
	selector func(epoch int) func(id uint32) bool
	// drift omits unchanged blocks; nil: all rows are sent.
	drift *drift
	// ahead reports whether a refresh-only pass precedes the epoch's pass.
	ahead func(epoch int) bool
}

// blend is a change of stored rows: they are scaled by before, new rows replace them or, with
// add, are added to them, and all are scaled by after.
type blend struct {
	before, after float32
	add           bool
	scores        bool // of attention are scaled too
}

// history is the rows of a slot of every epoch.
type history struct {
	*halo.History
	storedEpoch int // the epoch for which due rows have been stored
	due         bool
	sent        sent
}

// NewTimed makes the source of a policy other than always, never and unsmoothed previous.
// Collective.
func NewTimed(p Policy, o halo.HistoryOptions) *Timed {
	s := &Timed{timetable: p.kind().timetable(p, o), histories: map[slotKey]*history{}}
	s.groups = max(s.groups, 1)
	if s.group == nil {
		s.group = func(uint32) int { return 0 }
	}
	if s.selector != nil {
		s.parts = []*halo.Part{halo.NewPart(o.Plan, o.Arena.For(halo.Buffers))}
	} else {
		s.parts = halo.NewParts(o.Plan, s.groups, s.group, o.Arena.For(halo.Buffers))
	}
	o.Parts, o.OwnBatches, o.Framed = s.parts, s.lag > 0, s.drift != nil
	s.store = halo.NewHistories(o)
	for _, l := range o.Shapes {
		s.addHistory(slotKey{l.Layer, false}, l, len(o.Plan.SendRows), o)
		if l.Backward {
			s.addHistory(slotKey{l.Layer, true}, l, o.Plan.Ghosts, o)
		}
	}
	return s
}

// addHistory makes the history of a layer and direction with the given number of sent rows.
func (s *Timed) addHistory(at slotKey, l halo.Shape, leaving int, o halo.HistoryOptions) {
	h := &history{History: s.store.NewHistory(l, at.backward)}
	if s.drift != nil {
		h.sent = sent{mapped.Make[float32](o.Arena.For(halo.Buffers), leaving*l.Width), make([]int32, o.Plan.Parts)}
	}
	s.histories[at] = h
	s.list = append(s.list, h)
}

func (s *Timed) of(at halo.Slot) *history { return s.histories[slotKey{at.Layer, at.Backward}] }

// batch returns the batch whose rows a slot uses, nil for none.
func (s *Timed) batch(h *history, at halo.Slot) *halo.Batch {
	from := at
	from.Epoch -= s.lag
	g := s.leaving(from)
	if from.Epoch < 1 || g < 0 || h.storedEpoch == at.Epoch {
		return nil
	}
	b := h.Batches[g]
	if epoch, ok := b.UnderWay(); !ok || epoch != from.Epoch {
		return nil
	}
	return b
}

// storeDue stores due rows, unless that is done.
func (s *Timed) storeDue(h *history, at halo.Slot) error {
	if h.storedEpoch == at.Epoch {
		return nil
	}
	b := s.batch(h, at)
	h.storedEpoch, h.due = at.Epoch, b != nil
	how := blend{before: 1, after: 1}
	if s.blend != nil {
		how = s.blend(at.Backward, h.due)
	}
	h.Scale(how.before, how.scores)
	if h.due {
		s.inTransit.remove(b)
		if err := b.End(how.add); err != nil {
			return err
		}
	}
	h.Scale(how.after, how.scores)
	h.Publish()
	return nil
}

// Reserve implements halo.Collective.
func (s *Timed) Reserve(l halo.Shape) { s.store.Reserve(l) }

// Ahead reports whether a refresh-only pass precedes the epoch's pass.
func (s *Timed) Ahead(epoch int) bool { return s.ahead != nil && s.ahead(epoch) }

// SendBuffer implements halo.Source. It is empty for rows that are not sent.
func (s *Timed) SendBuffer(at halo.Slot) kernels.Mat {
	switch {
	case s.leaving(at) < 0:
		return kernels.Mat{}
	case at.Backward:
		return s.of(at).Gradients()
	}
	return s.of(at).Sums()
}

// Offer implements halo.Source.
func (s *Timed) Offer(at halo.Slot, rows kernels.Mat, lo, hi int) error {
	g, h := s.leaving(at), s.of(at)
	if g < 0 {
		return nil
	}
	if lo != 0 || hi != rows.Rows {
		panic("refresh: a collective transfer takes all rows at once")
	}
	b := h.Batches[g]
	if _, under := b.UnderWay(); under {
		if err := s.storeDue(h, at); err != nil {
			return err
		}
	}
	s.selectRows(at.Epoch)
	var stays func(q, place int, rows codec.Rows) bool
	if s.drift != nil {
		stays = func(q, place int, rows codec.Rows) bool {
			return s.drift.isUnchanged(&h.sent, at.Epoch, q, place, rows)
		}
	}
	if err := b.Begin(h.History, s.parts[g], rows, at, stays); err != nil {
		return err
	}
	if s.lag > 0 {
		s.inTransit.add(b)
	}
	return nil
}

// Take implements halo.Source. Gradients are taken when they are added.
func (s *Timed) Take(at halo.Slot) (lo, hi int, err error) {
	h := s.of(at)
	if at.Backward {
		return 0, 0, nil
	}
	err = s.storeDue(h, at)
	return 0, h.View().Rows.Rows, err
}

// View implements halo.Source.
func (s *Timed) View(at halo.Slot) (halo.View, error) {
	if at.Backward {
		return halo.View{Rows: s.of(at).Sums()}, nil
	}
	return s.of(at).View(), nil
}

// Add implements halo.Source.
func (s *Timed) Add(o kernels.Ops, at halo.Slot, own kernels.Mat, lo, hi int) error {
	if lo != 0 || hi != own.Rows {
		panic("refresh: a collective transfer adds to all rows at once")
	}
	h := s.of(at)
	if err := s.storeDue(h, at); err != nil {
		return err
	}
	if h.due || s.gradsPersist {
		h.AddTo(o, own)
	} else {
		o.Clear(h.Sums())
	}
	return nil
}

// Arrived implements halo.Source.
func (s *Timed) Arrived(at halo.Slot) (bool, error) {
	b := s.batch(s.of(at), at)
	if b == nil {
		return true, nil
	}
	return b.Arrived()
}

// Await implements halo.Collective.
func (s *Timed) Await(at halo.Slot) error {
	b := s.batch(s.of(at), at)
	if b == nil {
		return nil
	}
	s.inTransit.remove(b)
	return b.Await()
}

// Progress implements halo.Collective.
func (s *Timed) Progress() error { return s.inTransit.progress() }

// Settle implements halo.Collective.
func (s *Timed) Settle() error {
	for _, b := range s.inTransit.list {
		if err := b.End(false); err != nil {
			return err
		}
	}
	s.inTransit.list = s.inTransit.list[:0]
	for _, h := range s.list {
		h.Forget()
		h.storedEpoch, h.due = 0, false
	}
	return nil
}

// TakeStats implements halo.Source.
func (s *Timed) TakeStats() halo.Stats { return s.store.TakeStats() }

// selectRows selects the rows that are sent in an epoch.
func (s *Timed) selectRows(epoch int) {
	if s.selector == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.selectedEpoch != epoch {
		s.parts[0].Select(s.selector(epoch))
		s.selectedEpoch = epoch
	}
}
