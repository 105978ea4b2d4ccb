package refresh

import (
	"sync"
	"time"

	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/kernels"
)

// Bounded lets gathers read the newest rows that have come, of whatever epoch
// within a bound (Dorylus, OSDI'21, §5.2). Rows leave as soon as they are
// offered, in one message for each rank that holds some of them; a message says
// of which epoch its rows are, and they replace older ones, in whatever order
// they come.
//
// A gather of an epoch may read rows of the epochs from Staleness+1 before it to
// Staleness+1 behind it. It may go on once every ghost has had a row. Gradients
// have no bound of their own.
type Bounded struct {
	o        BoundedOptions
	sendIDs  []uint32               // dataset ids of the plan's SendRows
	sendRows kernels.Vector[uint32] // the plan's, where Ops compute
	layers   [][2]*series           // by layer, forward and backward; nil where no rows travel

	goes func(at halo.Slot, q int) bool // whether rows that are offered leave for rank q; nil: all do

	mu    sync.Mutex
	stats halo.Stats
}

var _ halo.Receiver = (*Bounded)(nil)

// BoundedOptions say between whom rows travel, and how.
type BoundedOptions struct {
	Rank      int
	Shapes    []halo.Shape
	Plan      *halo.Plan // without sums
	Codec     codec.Codec
	Seed      uint64 // of codecs that round at random
	Staleness int
	After     int // rows of this epoch and of those before are of no use
	Outbox    comm.Outbox
	Tag       int // of messages
}

// NewBounded makes room for the rows of all layers, which lies where ops
// computes; every layer and direction gets a fork of ops. Memory comes from a.
func NewBounded(o BoundedOptions, ops kernels.Ops, a *mapped.Arena) *Bounded {
	p := o.Plan
	s := &Bounded{o: o, sendRows: kernels.Place(ops, a.For(halo.Buffers), p.SendRows), sendIDs: p.SendIDs(a.For(halo.Buffers))}
	for _, l := range o.Shapes {
		for len(s.layers) <= l.Layer {
			s.layers = append(s.layers, [2]*series{})
		}
		pair := &s.layers[l.Layer]
		pair[0] = newSeries(l.Width, p.RecvStart, ops, a.For(halo.Ghosts))
		if ops.Remote() {
			pair[0].leaving = mapped.Make[float32](a.For(halo.Buffers), p.Own*l.Width)
		}
		if l.Backward {
			pair[1] = newSeries(l.Width, p.SendStart, ops, a.For(halo.Buffers))
			pair[1].leaving = mapped.Make[float32](a.For(halo.Ghosts), p.Ghosts*l.Width)
			pair[1].room = kernels.PlaceMat(ops, a.For(halo.Ghosts), p.Ghosts, l.Width, pair[1].leaving)
		}
	}
	return s
}

// at is the series of a slot.
func (s *Bounded) at(at halo.Slot) *series {
	if at.Backward {
		return s.layers[at.Layer][1]
	}
	return s.layers[at.Layer][0]
}

// Room implements halo.Source.
func (s *Bounded) Room(at halo.Slot) kernels.Mat { return s.at(at).room }

// Offer implements halo.Source.
func (s *Bounded) Offer(at halo.Slot, rows kernels.Mat, lo, hi int) error {
	x := s.at(at).host(rows, lo, hi)
	for q := range s.o.Plan.Parts {
		if s.goes != nil && !s.goes(at, q) {
			continue
		}
		first, out := s.share(at, q, lo, hi, x, rows.Cols)
		if out.Len == 0 {
			continue
		}
		if err := s.send(q, message{slot: at, first: first, rows: out.Len}, out); err != nil {
			return err
		}
	}
	return nil
}

// share is which of the rows lo..hi-1 of x go to rank q, and the place of the first
// one in the list that q and this rank share.
func (s *Bounded) share(at halo.Slot, q, lo, hi int, x []float32, width int) (first int, rows codec.Rows) {
	p := s.o.Plan
	if !at.Backward {
		from, to := p.Boundary(q, lo, hi)
		return from - int(p.SendStart[q]), codec.Rows{X: x, Cols: width, Len: to - from, Index: p.SendRows[from:to], IDs: s.sendIDs[from:to]}
	}
	start := int(p.RecvStart[q])
	from, to := max(start, lo), min(int(p.RecvStart[q+1]), hi)
	if from >= to {
		return 0, codec.Rows{}
	}
	return from - start, codec.Rows{X: x[from*width : to*width], Cols: width, Len: to - from, IDs: p.GhostIDs[from:to]}
}

// send sends rows to a rank through the codec.
func (s *Bounded) send(to int, m message, rows codec.Rows) error {
	b, err := s.o.Outbox.Buffer()
	if err != nil {
		return err
	}
	began := time.Now()
	key := codec.Key{Seed: s.o.Seed, Epoch: m.slot.Epoch, Layer: m.slot.Layer, Backward: m.slot.Backward}
	b = codec.EncodeBlock(m.header(b[:0]), s.o.Codec, rows, m.first, key, nil)
	s.count(halo.Stats{RawBytes: 4 * int64(rows.Len*rows.Cols), SentBytes: int64(len(b)), Messages: 1, Encode: time.Since(began)})
	return s.o.Outbox.Post(b, to, s.o.Tag)
}

func (s *Bounded) count(o halo.Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Add(o)
}

// TakeStats implements halo.Source.
func (s *Bounded) TakeStats() halo.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.stats
	s.stats = halo.Stats{}
	return all
}

// Accept implements halo.Receiver. Rows of epochs up to After are of no use.
func (s *Bounded) Accept(from int, b []byte) (at halo.Slot, due bool, err error) {
	m, err := read(b, from)
	if err != nil {
		return at, false, err
	}
	if at = m.slot; at.Epoch <= s.o.After {
		return at, false, nil
	}
	if at.Layer >= len(s.layers) || s.at(at) == nil || from < 0 || from >= s.o.Plan.Parts || !s.at(at).accept(m, from) {
		return at, false, fault.New(fault.Runtime, "halo", "", "rank %d sent %d rows from row %d on of layer %d, which fit nowhere",
			from, m.rows, m.first, at.Layer).Then("partition the dataset again, and run the same siafu on all ranks")
	}
	return at, true, nil
}

// Arrived implements halo.Source. It never fails.
func (s *Bounded) Arrived(at halo.Slot) (bool, error) { return s.at(at).complete(), nil }

// Take implements halo.Source. It takes the oldest message that has been accepted
// for the slot's layer and direction, of whatever epoch.
func (s *Bounded) Take(at halo.Slot) (lo, hi int, err error) {
	lo, hi, _, err = s.take(at)
	return lo, hi, err
}

// take is Take, and tells which rank has sent the rows.
func (s *Bounded) take(at halo.Slot) (lo, hi, from int, err error) {
	began := time.Now()
	lo, hi, from, err = s.at(at).take(s.o.Codec)
	if err != nil {
		return 0, 0, from, fault.New(fault.Runtime, "halo", "", "rank %d: rows of layer %d from rank %d are damaged: %v", s.o.Rank, at.Layer, from, err)
	}
	s.count(halo.Stats{Decode: time.Since(began)})
	return lo, hi, from, nil
}

// Want implements halo.Source. Backward there is nothing, since plans are without
// sums.
func (s *Bounded) Want(at halo.Slot) (halo.View, error) {
	if at.Backward {
		return halo.View{}, nil
	}
	r := s.at(at)
	for _, b := range r.blocks {
		if b.Epoch < at.Epoch-1-s.o.Staleness || b.Epoch > at.Epoch+1+s.o.Staleness {
			return halo.View{}, fault.New(fault.Runtime, "halo", "", "rank %d in epoch %d would gather rows of rank %d of epoch %d, which staleness %d does not allow",
				s.o.Rank, at.Epoch, r.owner(b.First), b.Epoch, s.o.Staleness)
		}
	}
	return halo.View{Rows: r.rows, Blocks: r.blocks}, nil
}

// Add implements halo.Source.
func (s *Bounded) Add(o kernels.Ops, at halo.Slot, own kernels.Mat, lo, hi int) error {
	returned := s.at(at).rows
	for q := range s.o.Plan.Parts {
		if from, to := s.o.Plan.Boundary(q, lo, hi); from < to {
			o.AddRows(own, kernels.Mat{}, s.sendRows.Part(from, to), returned.Part(from, to))
		}
	}
	return nil
}
