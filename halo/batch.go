package halo

import (
	"siafu/halo/codec"
	"siafu/kernels"
)

// Batch sends one part of the rows of a History from rank to rank, one epoch after another.
// Received rows are stored in the batch until End puts them into the History.
type Batch struct {
	carrier
	direct  *direct
	chunked *chunked
	stats   Stats
	way     way
	epoch   int
	of      *History // nil unless it is under way
	stays   []bool
}

// batch makes one that lands in buffers.
func (h *Histories) batch(near, far []float32) *Batch {
	b := &Batch{}
	if h.direct() {
		b.direct = newDirect(h.o.Comm, h.o.Plan.Parts, h.o.Team, near, far, &b.stats)
		b.carrier = b.direct
	} else {
		b.chunked = newChunked(h.o.Comm, h.o.Team, h.o.Ops, h.o.Arena.For(FedBack), &b.stats)
		b.chunked.use(h.o.Codec)
		if b.chunked.losts != nil {
			b.chunked.losts = h.losts
		}
		b.carrier = b.chunked
	}
	h.list = append(h.list, b)
	return b
}

// tagged separates the batch's messages from those of others.
func (b *Batch) tagged(tag int) {
	if b.chunked != nil {
		b.chunked.tag = tag
	}
}

// UnderWay returns the epoch of the rows in transit, if any.
func (b *Batch) UnderWay() (epoch int, ok bool) { return b.epoch, b.of != nil }

// Arrived reports, without waiting, whether all expected rows have arrived.
func (b *Batch) Arrived() (bool, error) { return b.arrived() }

// Await waits until all expected rows have arrived.
func (b *Batch) Await() error { return b.await() }

// Begin sends a part of the rows: forward of x [Own x width] and of Sums, backward of
// Gradients. The caller may change the rows when Begin returns. stays, unless it is nil,
// reports whether the rows for a rank, starting at a place in the history's list, are
// unchanged. That rank then keeps its copies. Collective.
func (b *Batch) Begin(r *History, part *Part, x kernels.Mat, at Slot, stays func(q, place int, rows codec.Rows) bool) error {
	if b.of != nil {
		panic("halo: a batch is under way already")
	}
	b.of, b.epoch, b.way = r, at.Epoch, r.way(part, x)
	if stays != nil {
		b.way.stays = append(b.stays[:0], make([]bool, r.o.Plan.Parts)...)
		b.stays = b.way.stays
		r.o.Team.Run(r.o.Plan.Parts, 1, func(lo, hi int) {
			for q := lo; q < hi; q++ {
				from, to := int(b.way.outStart[q]), int(b.way.outStart[q+1])
				b.stays[q] = from < to && stays(q, from, b.way.out.Part(from, to))
			}
		})
	}
	return b.begin(b.way, Key{Seed: r.o.Seed, Epoch: at.Epoch, Layer: at.Layer, Backward: at.Backward, From: r.o.Comm.Rank()})
}

// way is that of a part of rows.
func (r *History) way(part *Part, x kernels.Mat) way {
	w := r.coming(part)
	if r.backward {
		kernels.Read(r.ops, r.gradients, r.Gradients())
		w.out = codec.Rows{X: r.gradients, Cols: r.shape.Width, Len: len(part.Came), Index: part.Came, IDs: part.cameIDs}
		w.places, w.outAll = part.Came, r.o.Plan.Ghosts
		return w
	}
	w.out = r.leaving(part, x)
	w.places, w.outAll = part.Sent, len(r.o.Plan.SendRows)
	return w
}

// coming is the side of a way on which rows come.
func (r *History) coming(part *Part) way {
	in := codec.Rows{X: r.rows, Cols: r.shape.Width, Len: len(part.Came), Index: part.Came}
	w := way{backward: r.backward, outStart: part.SendStart, inStart: part.RecvStart}
	if r.backward {
		in.Len, in.Index = len(part.Sent), part.Sent
		w.outStart, w.inStart = part.RecvStart, part.SendStart
	}
	w.in = in
	return w
}

// leaving are the rows of x and of sums that go out.
func (r *History) leaving(part *Part, x kernels.Mat) codec.Rows {
	rows := codec.Rows{Cols: r.shape.Width, Len: len(part.Sent), IDs: part.sentIDs, Sums: part.sums}
	if !r.ops.Remote() {
		rows.X, rows.More, rows.Index = x.Host(), r.Sums().Host(), part.rows
		return rows
	}
	n := len(r.o.Plan.SendRows)
	packed := r.Histories.there.Reshape(n, r.shape.Width)
	r.ops.PackRows(packed, r.sendRows, x, r.Sums())
	kernels.Read(r.ops, r.packed, packed)
	rows.X, rows.Index = r.packed[:n*r.shape.Width], part.Sent
	return rows
}

// End waits for the rows in transit, and stores them in their history or, with add, adds
// them to its rows. Collective.
func (b *Batch) End(add bool) error {
	r := b.of
	b.of = nil
	b.way.add = add
	if err := b.end(b.way); err != nil {
		return err
	}
	for q := range r.o.Plan.Parts {
		if b.chunked != nil && b.way.stays != nil && b.chunked.stayed[q] {
			continue
		}
		for _, i := range b.way.in.Index[b.way.inStart[q]:b.way.inStart[q+1]] {
			r.epochs[i] = int32(b.epoch)
		}
	}
	return nil
}
