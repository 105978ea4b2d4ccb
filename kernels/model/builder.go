package model

import (
	"siafu/graph/mapped"
	"siafu/kernels"
)

// Builder is what a layer is made from: the network's spec, the rank's team,
// and room that lasts as long as the network.
type Builder struct {
	Spec  Spec
	Team  *kernels.Team
	Rows  int // vertices of the network
	net   *Network
	in    *input
	room  *room
	arena *mapped.Arena

	params [][]Param // of each layer
}

func newBuilder(n *Network, in Input, team *kernels.Team, room *room) *Builder {
	s, a := n.Spec, room.arena
	x := &input{Input: in, team: team, arena: a}
	if p := s.InputDropout; p > 0 {
		x.drop = &kernels.Dropout{Seed: s.Seed, Layer: 0, P: p, IDs: in.IDs}
	}
	// Sparse features are spread out only where they are gathered; dense ones
	// with dropout are copied by all that reads them.
	gathered, sparse := s.Propagates() && !s.CacheInput && s.Orders[0] == GatherFirst, in.Features.Sparse != nil
	if gathered && sparse || x.drop != nil && !sparse {
		x.scratch = room.matrix(in.Features.Dim)
	}
	return &Builder{Spec: s, Team: team, Rows: len(in.IDs), net: n, in: x, room: room, arena: a, params: s.layout()}
}

// cached is ÂX for the first layer where it is kept, nil for all others.
func (b *Builder) cached(l int) *cachedInput {
	if l > 0 {
		return nil
	}
	return b.net.cached
}

// Last tells whether layer l makes the logits: it has no activation and no
// dropout.
func (b *Builder) Last(l int) bool { return l == b.Spec.Layers()-1 }

// Hidden is what layer l applies its weights to.
func (b *Builder) Hidden(l int) Hidden {
	h := Hidden{team: b.Team, cached: b.cached(l), count: b.Rows, in: b.Spec.Dims[l]}
	if l == 0 {
		h.input = b.in
		b.in.multiplied()
	}
	return h
}

// Weight is the i-th weight of layer l, in the order of Kind.Weights.
func (b *Builder) Weight(l, i int) Weight {
	p := b.params[l][i]
	return Weight{p.Of(b.net.Weights), p.Of(b.net.Grad)}
}

// Room is a matrix [n x cols] of zeros. What a layer hands out to be gathered
// lies in one, or is what it was given, or the features.
func (b *Builder) Room(cols int) []float32 { return b.room.matrix(cols) }

// GradRoom is room for the gradient of layer l's input [n x in], nil for the
// first layer, whose input is not trained.
func (b *Builder) GradRoom(l int) []float32 {
	if l == 0 {
		return nil
	}
	return b.Room(b.Spec.Dims[l])
}

// Scratch is n zeros: room that does not grow with the vertices.
func (b *Builder) Scratch(n int) []float32 { return mapped.Make[float32](b.arena, n) }

func (b *Builder) dense(l int) dense {
	s := b.Spec
	d := dense{team: b.Team, rows: b.Rows, in: s.Dims[l], out: s.Dims[l+1], last: b.Last(l), drop: b.Dropout(l)}
	for i, p := range b.params[l] {
		// The first matrix and the first bias.
		switch w := b.Weight(l, i); {
		case p.Bias && d.b == nil:
			d.b, d.gb = w.W, w.Grad
		case !p.Bias && d.w == nil:
			d.w, d.gw = w.W, w.Grad
		}
	}
	return d
}

// Dropout is that of layer l's output, nil where nothing is dropped. Pass.Mask
// makes it the mask of a pass.
func (b *Builder) Dropout(l int) *kernels.Dropout {
	// Layer 0 is the input's, so that no two masks share a counter.
	return b.dropout(l+1, b.Spec.Dropout, b.in.IDs, !b.Last(l))
}

// AttentionDropout is the same for the attention of layer l's edges.
func (b *Builder) AttentionDropout(l int) *kernels.Dropout {
	return b.dropout(l+attentionStream, b.Spec.AttentionDropout, b.in.LocalIDs, true)
}

func (b *Builder) dropout(stream int, p float64, ids []uint32, wanted bool) *kernels.Dropout {
	if p == 0 || !wanted {
		return nil
	}
	return &kernels.Dropout{Seed: b.Spec.Seed, Layer: stream, P: p, IDs: ids}
}
