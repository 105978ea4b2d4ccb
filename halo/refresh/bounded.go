package refresh

import (
	"math"
	"sync"
	"time"

	"siafu/halo"
	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/wire"
	"siafu/kernels"
)

// Bounded provides the newest received rows, of any epoch within a bound (Dorylus, OSDI'21,
// §5.2). Rows are sent as soon as they are offered, in one message per receiving rank, or
// in several messages that are short enough to leave at once. A message contains the epoch
// of its rows. They replace older rows, in any order of arrival.
//
// A gather of epoch e may read rows of epochs e-Staleness-1 to e+Staleness+1. It may start
// once every ghost has received a row. Gradients have no bound of their own.
type Bounded struct {
	o        BoundedOptions
	sendIDs  []uint32               // dataset ids of the plan's SendRows
	sendRows kernels.Vector[uint32] // the plan's SendRows, in device memory
	// Dataset ids of SendRows and of ghosts, in device memory.
	idsThere, ghostIDs kernels.Vector[uint32]
	layers             [][2]*series // by layer, forward and backward; nil where no rows are sent

	sendsTo func(at halo.Slot, q int) bool // whether offered rows are sent to rank q; nil: all are

	mu    sync.Mutex
	stats halo.Stats
}

var _ halo.Receiver = (*Bounded)(nil)

// BoundedOptions are the ranks and the transport of a Bounded.
type BoundedOptions struct {
	Rank      int
	Shapes    []halo.Shape
	Plan      *halo.Plan // without sums
	Codec     codec.Codec
	Seed      uint64 // of codecs that round at random
	Staleness int
	After     int // rows of epochs up to this one are discarded
	Outbox    comm.Outbox
	Tag       int // of messages
	Longest   int // approximate maximum bytes of a message; 0: one message per rank
}

// NewBounded allocates the rows of all layers in the memory of ops. Every layer and
// direction gets a fork of ops. Memory comes from a.
func NewBounded(o BoundedOptions, ops kernels.Ops, a *mapped.Arena) *Bounded {
	p := o.Plan
	s := &Bounded{o: o, sendRows: kernels.Place(ops, a.For(halo.Buffers), p.SendRows), sendIDs: p.SendIDs(a.For(halo.Buffers))}
	for _, l := range o.Shapes {
		for len(s.layers) <= l.Layer {
			s.layers = append(s.layers, [2]*series{})
		}
		pair := &s.layers[l.Layer]
		pair[0] = newSeries(l.Width, p.RecvStart, longest(p.SendStart), o.Codec, ops, a.For(halo.Ghosts))
		if pair[0].coder == nil && ops.Remote() {
			pair[0].sendRows = mapped.Make[float32](a.For(halo.Buffers), p.Own*l.Width)
		}
		if !l.Backward {
			continue
		}
		pair[1] = newSeries(l.Width, p.SendStart, longest(p.RecvStart), o.Codec, ops, a.For(halo.Buffers))
		if pair[1].coder != nil {
			pair[1].buffer = kernels.NewMat(ops, a.For(halo.Ghosts), p.Ghosts, l.Width)
			continue
		}
		pair[1].sendRows = mapped.Make[float32](a.For(halo.Ghosts), p.Ghosts*l.Width)
		pair[1].buffer = kernels.PlaceMat(ops, a.For(halo.Ghosts), p.Ghosts, l.Width, pair[1].sendRows)
	}
	if ops.Remote() {
		s.idsThere, s.ghostIDs = kernels.Place(ops, a.For(halo.Buffers), s.sendIDs), kernels.Place(ops, a.For(halo.Buffers), p.GhostIDs)
	}
	return s
}

// at returns the series of a slot.
func (s *Bounded) at(at halo.Slot) *series {
	if at.Backward {
		return s.layers[at.Layer][1]
	}
	return s.layers[at.Layer][0]
}

// SendBuffer implements halo.Source.
func (s *Bounded) SendBuffer(at halo.Slot) kernels.Mat { return s.at(at).buffer }

// Offer implements halo.Source.
func (s *Bounded) Offer(at halo.Slot, rows kernels.Mat, lo, hi int) error {
	o := offer{slot: at, series: s.at(at), rows: rows}
	if o.series.coder == nil {
		o.x = o.series.host(rows, lo, hi)
	}
	// Messages to all ranks alternate, beginning with the next rank. If all ranks sent to rank 0 first,
	// its link would limit them.
	most := s.maxRows(o.series)
	for sent, more := 0, true; more; sent += most {
		more = false
		for k := 1; k < s.o.Plan.Parts; k++ {
			q := (s.o.Rank + k) % s.o.Plan.Parts
			if s.sendsTo != nil && !s.sendsTo(at, q) {
				continue
			}
			first, from, to := s.boundaryRange(at, q, lo, hi)
			if o.from = from + sent; o.from >= to {
				continue
			}
			o.to = min(to, o.from+most)
			more = more || o.to < to
			if err := s.send(q, message{slot: at, first: first + sent, rows: o.to - o.from}, &o); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxRows returns the maximum number of rows of a series in a message.
func (s *Bounded) maxRows(r *series) int {
	if s.o.Longest == 0 {
		return math.MaxInt32
	}
	return halo.RowsIn(s.o.Longest, s.o.Codec, r.width)
}

// offer has the rows to send. Rows from..to-1 of the plan's list go to the current rank. x has all
// rows in host memory, and is nil if the series has a coder.
type offer struct {
	slot     halo.Slot
	series   *series
	rows     kernels.Mat
	x        []float32
	from, to int
}

// boundaryRange returns the rows among lo..hi-1 that rank q receives, as a range of SendRows or of
// ghosts. first is the index of the first of them in the list that both ranks have.
func (s *Bounded) boundaryRange(at halo.Slot, q, lo, hi int) (first, from, to int) {
	p, start := s.o.Plan, 0
	if !at.Backward {
		start = int(p.SendStart[q])
		from, to = p.Boundary(q, lo, hi)
	} else {
		start = int(p.RecvStart[q])
		from, to = max(start, lo), min(int(p.RecvStart[q+1]), hi)
	}
	return from - start, from, max(from, to)
}

// send sends rows to a rank through the codec.
func (s *Bounded) send(to int, m message, o *offer) error {
	b, err := s.o.Outbox.Buffer()
	if err != nil {
		return err
	}
	began := time.Now()
	b = s.block(m.header(b[:0]), m, o)
	s.count(halo.Stats{RawBytes: 4 * int64(m.rows*o.rows.Cols), SentBytes: int64(len(b)), Messages: 1, Encode: time.Since(began)})
	return s.o.Outbox.Post(b, to, s.o.Tag)
}

// block appends the block of a message.
func (s *Bounded) block(dst []byte, m message, o *offer) []byte {
	key := codec.Key{Seed: s.o.Seed, Epoch: m.slot.Epoch, Layer: m.slot.Layer, Backward: m.slot.Backward}
	if c := o.series.coder; c != nil {
		rows := kernels.Outgoing{X: o.rows, Index: s.sendRows.Part(o.from, o.to), IDs: s.idsThere.Part(o.from, o.to)}
		if m.slot.Backward {
			rows = kernels.Outgoing{X: o.rows.Part(o.from, o.to), IDs: s.ghostIDs.Part(o.from, o.to)}
		}
		return c.Append(dst, rows, m.rows, m.first, key)
	}
	width := o.rows.Cols
	rows := codec.Rows{X: o.x, Cols: width, Len: m.rows}
	if m.slot.Backward {
		rows.X, rows.IDs = o.x[o.from*width:o.to*width], s.o.Plan.GhostIDs[o.from:o.to]
	} else {
		rows.Index, rows.IDs = s.o.Plan.SendRows[o.from:o.to], s.sendIDs[o.from:o.to]
	}
	return codec.EncodeBlock(dst, s.o.Codec, rows, m.first, key, nil)
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

// Accept implements halo.Receiver. It discards rows of epochs up to After.
func (s *Bounded) Accept(from int, b []byte) (at halo.Slot, due bool, err error) {
	m, err := read(b, from)
	if err != nil {
		return at, false, err
	}
	if at = m.slot; at.Epoch <= s.o.After {
		return at, false, nil
	}
	if at.Layer >= len(s.layers) || s.at(at) == nil || from < 0 || from >= s.o.Plan.Parts || !s.at(at).accept(m, b, from) {
		return at, false, wire.Mismatch("halo", "unexpected rows from rank %d: %d rows at row %d of layer %d",
			from, m.rows, m.first, at.Layer)
	}
	return at, true, nil
}

// Arrived implements halo.Source. It never fails.
func (s *Bounded) Arrived(at halo.Slot) (bool, error) { return s.at(at).complete(), nil }

// Oldest implements halo.Receiver.
func (s *Bounded) Oldest(at halo.Slot) int { return s.at(at).age() }

// Take implements halo.Source. It takes the oldest message that has been accepted
// for the slot's layer and direction, of whatever epoch.
func (s *Bounded) Take(at halo.Slot) (lo, hi int, err error) {
	lo, hi, _, err = s.take(at)
	return lo, hi, err
}

// take implements Take, and also returns the rank that has sent the rows.
func (s *Bounded) take(at halo.Slot) (lo, hi, from int, err error) {
	began := time.Now()
	lo, hi, from, err = s.at(at).take(s.o.Codec)
	if err != nil {
		return 0, 0, from, fault.New(fault.Runtime, "halo", "", "rank %d: corrupt rows of layer %d from rank %d: %v",
			s.o.Rank, at.Layer, from, err)
	}
	s.count(halo.Stats{Decode: time.Since(began)})
	return lo, hi, from, nil
}

// View implements halo.Source. Backward it returns nothing, because plans have no sums
// here.
func (s *Bounded) View(at halo.Slot) (halo.View, error) {
	if at.Backward {
		return halo.View{}, nil
	}
	r := s.at(at)
	for _, b := range r.blocks {
		if b.Epoch < at.Epoch-1-s.o.Staleness || b.Epoch > at.Epoch+1+s.o.Staleness {
			return halo.View{}, fault.New(fault.Runtime, "halo", "",
				"rank %d in epoch %d needs rows of rank %d, but the newest are of epoch %d, beyond the staleness bound %d",
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

// longest returns the largest number of rows of a rank.
func longest(start []int64) (n int) {
	for q := range len(start) - 1 {
		n = max(n, int(start[q+1]-start[q]))
	}
	return n
}
