package halo

import (
	"siafu/halo/codec"
	"siafu/kernels"
)

// Batch sends one part of the rows of a History from rank to rank, one epoch after another.
// Received rows are stored in the batch until End puts them into the History.
type Batch struct {
	transport
	direct    *direct
	chunked   *chunked
	stats     Stats
	direction direction
	epoch     int
	history   *History // nil unless in transit
	unchanged []bool
}

// batch makes a batch that receives into buffers.
func (h *Histories) batch(near, far []float32) *Batch {
	b := &Batch{}
	if h.direct() {
		b.direct = newDirect(h.o.Comm, h.o.Plan.Parts, h.o.Team, near, far, &b.stats)
		b.transport = b.direct
	} else {
		b.chunked = newChunked(h.o.Comm, h.o.Team, h.o.Ops, h.o.Arena.For(FedBack), &b.stats)
		b.chunked.use(h.o.Codec)
		if b.chunked.codecErrors != nil {
			b.chunked.codecErrors = h.codecErrors
		}
		b.transport = b.chunked
	}
	h.list = append(h.list, b)
	return b
}

// setTag sets the tag that separates the batch's messages from messages of other batches.
func (b *Batch) setTag(tag int) {
	if b.chunked != nil {
		b.chunked.tag = tag
	}
}

// UnderWay returns the epoch of the rows in transit, if any.
func (b *Batch) UnderWay() (epoch int, ok bool) { return b.epoch, b.history != nil }

// Arrived reports, without waiting, whether all expected rows have arrived.
func (b *Batch) Arrived() (bool, error) { return b.arrived() }

// Await waits until all expected rows have arrived.
func (b *Batch) Await() error { return b.await() }

// Begin sends a part of the rows: forward of x [Own x width] and of Sums, backward of
// Gradients. The caller may change the rows when Begin returns. stays, unless it is nil,
// reports whether the rows for a rank, starting at a place in the history's list, are
// unchanged. That rank then keeps its copies. Collective.
func (b *Batch) Begin(r *History, part *Part, x kernels.Mat, at Slot, stays func(q, place int, rows codec.Rows) bool) error {
	if b.history != nil {
		panic("halo: a batch is under way already")
	}
	b.history, b.epoch, b.direction = r, at.Epoch, r.directionOf(part, x)
	if stays != nil {
		b.direction.unchanged = append(b.unchanged[:0], make([]bool, r.o.Plan.Parts)...)
		b.unchanged = b.direction.unchanged
		r.o.Team.Run(r.o.Plan.Parts, 1, func(lo, hi int) {
			for q := lo; q < hi; q++ {
				from, to := int(b.direction.outStart[q]), int(b.direction.outStart[q+1])
				b.unchanged[q] = from < to && stays(q, from, b.direction.out.Part(from, to))
			}
		})
	}
	return b.begin(b.direction, Key{Seed: r.o.Seed, Epoch: at.Epoch, Layer: at.Layer, Backward: at.Backward, From: r.o.Comm.Rank()})
}

// directionOf returns the direction of a part.
func (r *History) directionOf(part *Part, x kernels.Mat) direction {
	w := r.incomingSide(part)
	if r.backward {
		kernels.Read(r.ops, r.gradients, r.Gradients())
		w.out = codec.Rows{X: r.gradients, Cols: r.shape.Width, Len: len(part.Received), Index: part.Received, IDs: part.receivedIDs}
		w.outIndices, w.outAll = part.Received, r.o.Plan.Ghosts
		return w
	}
	w.out = r.outgoingRows(part, x)
	w.outIndices, w.outAll = part.Sent, len(r.o.Plan.SendRows)
	return w
}

// incomingSide returns the receiving side of a direction.
func (r *History) incomingSide(part *Part) direction {
	in := codec.Rows{X: r.rows, Cols: r.shape.Width, Len: len(part.Received), Index: part.Received}
	w := direction{backward: r.backward, outStart: part.SendStart, inStart: part.RecvStart}
	if r.backward {
		in.Len, in.Index = len(part.Sent), part.Sent
		w.outStart, w.inStart = part.RecvStart, part.SendStart
	}
	w.in = in
	return w
}

// outgoingRows returns the rows of x and of sums to send.
func (r *History) outgoingRows(part *Part, x kernels.Mat) codec.Rows {
	rows := codec.Rows{Cols: r.shape.Width, Len: len(part.Sent), IDs: part.sentIDs, Sums: part.sums}
	if !r.ops.Remote() {
		rows.X, rows.More, rows.Index = x.Host(), r.Sums().Host(), part.rows
		return rows
	}
	n := len(r.o.Plan.SendRows)
	packed := r.Histories.devicePacked.Reshape(n, r.shape.Width)
	r.ops.PackRows(packed, r.sendRows, x, r.Sums())
	kernels.Read(r.ops, r.packed, packed)
	rows.X, rows.Index = r.packed[:n*r.shape.Width], part.Sent
	return rows
}

// End waits for the rows in transit, and stores them in their history or, with add, adds
// them to its rows. Collective.
func (b *Batch) End(add bool) error {
	r := b.history
	b.history = nil
	b.direction.add = add
	if err := b.end(b.direction); err != nil {
		return err
	}
	for q := range r.o.Plan.Parts {
		if b.chunked != nil && b.direction.unchanged != nil && b.chunked.unchangedRanks[q] {
			continue
		}
		for _, i := range b.direction.in.Index[b.direction.inStart[q]:b.direction.inStart[q+1]] {
			r.epochs[i] = int32(b.epoch)
		}
	}
	return nil
}
