package engine

import (
	"slices"

	"siafu/halo"
	"siafu/halo/codec"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/ranks/graphwork"
)

// mixedGhosts puts the rows of the shard's ghosts together, if a rank computes some of them in the
// last local layer and receives the others. Rows have three orders: of the shard's ghosts, of the
// local ghosts, and of received rows.
type mixedGhosts struct {
	layer    int // the last local layer
	exchange *halo.Exchange
	pieces   []int       // bounds of pieces of the shard's ghosts
	rows     kernels.Mat // of the shard's ghosts, or their gradients, in one layer at a time

	// Edges that copy rows between the orders: at most one into each row. Those of local ghosts
	// are for the layers before the last local one, and for that one.
	fromLocal, toLocal       [2]kernels.Edges
	fromReceived, toReceived kernels.Edges
}

// newMixedGhosts returns the zero value if ranks receive no rows of local layers. local is the number of
// local ghosts.
func (s *lockstep) newMixedGhosts(e *Engine, r *route, layer, local int, rows codec.Codec, a *mapped.Arena) (x mixedGhosts) {
	h := e.halo
	if e.Network.LocalShare == 0 {
		return x
	}
	near, received, computed := e.Shard.NumGhosts(), h.received.Ghosts, h.ends[0]
	x = mixedGhosts{
		layer: layer, exchange: r.exchange.Along(h.received, rows, r.graph.Layer(layer).Width), pieces: ghostPieces(near),
		rows: kernels.NewMat(s.adder, a.For(halo.Ghosts), near, r.graph.MaxWidth()),
	}
	last, source := slices.Clone(h.near), slices.Clone(h.near) // local ghosts in the last layer, received rows
	next := int32(0)
	for g, at := range h.near {
		if source[g] = -1; int(at) < 0 || int(at) >= computed {
			last[g], source[g] = -1, next
			next++
		}
	}
	a = a.For(GhostPlaces)
	for k, places := range [][]int32{h.near, last} {
		if k > 0 || len(h.ends) > 1 {
			x.fromLocal[k], x.toLocal[k] = copies(a, near, places), copies(a, local, inverse(a, places, local))
		}
	}
	x.fromReceived, x.toReceived = copies(a, near, source), copies(a, received, inverse(a, source, received))
	return x
}

// copies returns edges that copy row from[i] to row i of n, or nothing if it is negative.
func copies(a *mapped.Arena, n int, from []int32) kernels.Edges {
	begin, end, cols := mapped.Make[int64](a, n), mapped.Make[int64](a, n), mapped.Make[uint32](a, n)
	a.Fill(func() {
		for i, at := range from {
			if begin[i], end[i] = int64(i), int64(i); at >= 0 {
				end[i], cols[i] = int64(i+1), uint32(at)
			}
		}
	})
	return kernels.Edges{Begin: kernels.HostVector(begin), End: kernels.HostVector(end), Cols: kernels.HostVector(cols)}
}

// inverse returns the index of each value below n, or -1. In a sketch it returns nothing: work there
// must not grow with the graph.
func inverse(a *mapped.Arena, values []int32, n int) (list []int32) {
	a.Fill(func() {
		list = slices.Repeat([]int32{-1}, n)
		for i, v := range values {
			if v >= 0 {
				list[v] = int32(i)
			}
		}
	})
	return list
}

// part returns the edges into rows [lo, hi).
func part(e kernels.Edges, lo, hi int) kernels.Edges {
	e.Begin, e.End = e.Begin.Part(lo, hi), e.End.Part(lo, hi)
	return e
}

// of returns the index of a layer's edges of local ghosts.
func (x *mixedGhosts) of(layer int) int {
	if layer == x.layer {
		return 1
	}
	return 0
}

// ghostRows returns the rows of the shard's ghosts, or their gradients, in a layer.
func (x *mixedGhosts) ghostRows(l *graphwork.Layer) kernels.Mat {
	return x.rows.Reshape(x.rows.Rows, l.Width)
}

// place puts the rows of a piece of the shard's ghosts together from those of local ghosts and
// from received ones, and prepares them for gathering.
func (x *mixedGhosts) place(o kernels.Ops, s *lockstep, l *graphwork.Layer, layer, piece int) error {
	lo, hi := x.pieces[piece], x.pieces[piece+1]
	if lo == hi {
		return nil
	}
	dst := l.Ghosts.Part(lo, hi)
	o.SpMM(dst, part(x.fromLocal[x.of(layer)], lo, hi), s.pass.route.localGhosts.store.Emitted(layer, s.pass.Pass), false)
	if layer == x.layer {
		view, err := s.pass.route.ghosts.View(s.pass.slotOf(layer, false))
		if err != nil {
			return err
		}
		o.SpMM(dst, part(x.fromReceived, lo, hi), view.Rows, true)
	}
	l.PublishGhosts(o, lo, hi-lo)
	return nil
}

// grads computes the gradients of a piece of the shard's ghosts along the edges into own vertices.
func (x *mixedGhosts) grads(o kernels.Ops, s *lockstep, l *graphwork.Layer, piece int) {
	if lo, hi := x.pieces[piece], x.pieces[piece+1]; hi > lo {
		l.GhostGrads(o, lo, x.ghostRows(l).Part(lo, hi))
	}
}

// take sets dst to the gradients of an interval of local ghosts, or adds them.
func (x *mixedGhosts) take(o kernels.Ops, l *graphwork.Layer, layer int, i *interval, dst kernels.Mat, add bool) {
	if i.hi > i.lo {
		o.SpMM(dst, part(x.toLocal[x.of(layer)], i.lo, i.hi), x.ghostRows(l), add)
	}
}

// send offers the gradients of received rows to their owners. Collective over the graph ranks.
func (x *mixedGhosts) send(o kernels.Ops, s *lockstep, l *graphwork.Layer, slot halo.Slot) error {
	source := s.pass.route.ghosts
	buffer := source.SendBuffer(slot)
	if buffer.Rows > 0 {
		o.SpMM(buffer, x.toReceived, x.ghostRows(l), false)
	}
	return source.Offer(slot, buffer, 0, buffer.Rows)
}
