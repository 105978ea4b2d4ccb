package halo

import (
	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Histories contains the stored rows of all layers and both directions, with their shared
// memory. A stored row remains valid across epochs until a new row replaces it.
type Histories struct {
	o           HistoryOptions
	codecErrors Feedbacks

	// Rows computed for other ranks, one layer at a time: gradients of ghosts [Ghosts x widest],
	// on the device and on the host, and sums.
	gradients  []float32
	gradBuffer kernels.Mat
	sums       kernels.Mat
	// With a device: sent rows, before they are copied to the host.
	packed       []float32
	devicePacked kernels.Mat
	sendRows     kernels.Vector[uint32]

	shared *Batch // nil unless histories share one batch
	list   []*Batch
}

// HistoryOptions are the ranks and the transport of histories.
type HistoryOptions struct {
	Shapes []Shape
	Seed   uint64 // of codecs with random rounding
	Comm   comm.Comm
	Plan   *Plan
	Codec  codec.Codec
	Team   Parallel
	Ops    kernels.Ops // each history gets a fork
	Arena  *mapped.Arena
	// Parts are sent separately. All of them may be in transit at once.
	Parts []*Part
	// OwnBatches gives each history its own batches, so that several histories can be in transit
	// at once.
	OwnBatches bool
	// Framed sends rows in frames even without a codec, so that a rank may omit unchanged rows.
	Framed bool
}

// Tag returns the tag of the n-th of several simultaneous transfers. Tags repeat if there
// are more transfers than tags.
func Tag(n int) int { return 64 + n%(16<<10) }

// NewHistories allocates the shared memory of histories.
func NewHistories(o HistoryOptions) *Histories {
	h := &Histories{o: o, codecErrors: Feedbacks{}}
	p, widest, buffers := o.Plan, 0, o.Arena.For(Buffers)
	backward := 0
	for _, s := range o.Shapes {
		widest = max(widest, s.Width)
		if s.Backward {
			backward = max(backward, s.Width)
		}
	}
	h.gradients = mapped.Make[float32](o.Arena.For(Ghosts), p.Ghosts*backward)
	h.gradBuffer = kernels.PlaceMat(o.Ops, o.Arena.For(Ghosts), p.Ghosts, backward, h.gradients)
	h.sums = kernels.NewMat(o.Ops, buffers, p.Sums, widest)
	h.sendRows = kernels.Place(o.Ops, buffers, p.SendRows)
	if o.Ops.Remote() {
		h.packed = mapped.Make[float32](buffers, len(p.SendRows)*widest)
		h.devicePacked = kernels.NewMat(o.Ops, buffers, len(p.SendRows), widest)
	}
	if !o.OwnBatches {
		near, far := h.buffers(widest)
		h.shared = h.batch(near, far)
	}
	return h
}

// direct reports whether rows are sent unchanged, without frames.
func (h *Histories) direct() bool { return h.o.Codec.ID() == (codec.ID{}) && !h.o.Framed }

// buffers allocates the buffers of batches of the given width. It returns nil with a codec.
func (h *Histories) buffers(width int) (near, far []float32) {
	if !h.direct() {
		return nil, nil
	}
	a := h.o.Arena.For(Buffers)
	return mapped.Make[float32](a, len(h.o.Plan.SendRows)*width), mapped.Make[float32](a, h.o.Plan.Ghosts*width)
}

// History stores the rows of one layer in one direction. Forward: the ghost rows [Ghosts x
// width]. Backward: the gradients of own rows from other ranks [SendRows x width], in the order
// of the plan's SendRows.
type History struct {
	*Histories
	ops        kernels.Ops
	shape      Shape
	backward   bool
	Batches    []*Batch // by part
	rows       []float32
	deviceRows kernels.Mat
	epochs     []int32 // of each row; 0: never received
	scale      struct {
		factor float32
		values int // columns
		run    func(lo, hi int)
	}
}

// NewHistory allocates the history of a layer and direction.
func (h *Histories) NewHistory(s Shape, backward bool) *History {
	n, a := h.o.Plan.Ghosts, h.o.Arena.For(Ghosts)
	if backward {
		n, a = len(h.o.Plan.SendRows), h.o.Arena.For(Buffers)
	}
	r := &History{Histories: h, ops: h.o.Ops.Fork(), shape: s, backward: backward}
	r.rows, r.epochs = mapped.Make[float32](a, n*s.Width), mapped.Make[int32](a, n)
	r.deviceRows = kernels.PlaceMat(r.ops, a, n, s.Width, r.rows)
	r.scale.run = r.scaleRows
	if h.shared != nil {
		r.Batches = []*Batch{h.shared}
		return r
	}
	near, far := h.buffers(s.Width)
	for _, part := range h.o.Parts {
		b := h.batch(near, far)
		if near != nil {
			near, far = near[len(part.Sent)*s.Width:], far[len(part.Received)*s.Width:]
		}
		b.setTag(Tag(len(h.list) - 1))
		r.Batches = append(r.Batches, b)
	}
	return r
}

// Reserve allocates memory for the errors of a layer's codecs.
func (h *Histories) Reserve(s Shape) {
	h.list[0].chunked.reserve(s, h.o.Plan)
}

// TakeStats returns the traffic since the last call.
func (h *Histories) TakeStats() Stats {
	var all Stats
	for _, b := range h.list {
		all.Add(b.stats)
		b.stats = Stats{}
	}
	return all
}

// Gradients returns the matrix for gradients of ghosts [Ghosts x width], which are sent back to
// their owners.
func (r *History) Gradients() kernels.Mat {
	return r.gradBuffer.Reshape(r.o.Plan.Ghosts, r.shape.Width)
}

// Sums returns the matrix of the plan's sums [Sums x width]; backward, of their gradients.
func (r *History) Sums() kernels.Mat { return r.sums.Reshape(r.o.Plan.Sums, r.shape.Width) }

// View returns the stored rows and their epochs.
func (r *History) View() View { return View{Rows: r.deviceRows, Epochs: r.epochs} }

// Scale scales the stored rows, and their attention scores only if scores is true. Factor 0 sets
// rows to zero and their scores to absent, so that attention gives them weight 0.
func (r *History) Scale(factor float32, scores bool) {
	switch {
	case factor == 1 || len(r.epochs) == 0:
		return
	case factor == 0:
		clear(r.epochs)
	}
	r.scale.factor, r.scale.values = factor, r.shape.Width
	if !r.backward && (!scores || factor == 0) {
		r.scale.values -= r.shape.Scores
	}
	r.o.Team.Run(len(r.epochs), rowGrain, r.scale.run)
}

// absent is the attention score of an absent vertex. Relative to any other score its exponential
// is 0, also after the slope of a LeakyReLU. All results stay finite.
const absent = -1e30

func (r *History) scaleRows(lo, hi int) {
	w, values := r.shape.Width, r.scale.values
	for i := lo; i < hi; i++ {
		row := r.rows[i*w : (i+1)*w]
		if r.scale.factor != 0 {
			kernels.ScaleRow(row[:values], r.scale.factor)
			continue
		}
		clear(row[:values])
		for j := values; j < w; j++ {
			row[j] = absent
		}
	}
}

// Publish copies the rows to the memory of the Ops.
func (r *History) Publish() { kernels.Write(r.ops, r.deviceRows, r.rows) }

// Forget sets all rows to zero and marks them as never received.
func (r *History) Forget() {
	clear(r.rows)
	clear(r.epochs)
	r.Publish()
}

// AddTo adds the stored rows to own rows [Own x width] and to Sums, which must be zero, in
// ascending order of ranks.
func (r *History) AddTo(o kernels.Ops, own kernels.Mat) {
	p, sums := r.o.Plan, r.Sums()
	o.Clear(sums)
	for q := range p.Parts {
		from, to := int(p.SendStart[q]), int(p.SendStart[q+1])
		o.AddRows(own, sums, r.sendRows.Part(from, to), r.deviceRows.Part(from, to))
	}
}
