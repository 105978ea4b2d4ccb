package model

import (
	"siafu/graph/mapped"
	"siafu/kernels"
)

// builder makes the layers of a network and gives them room.
type builder struct {
	net   *Network
	in    *input
	team  *kernels.Team
	arena *mapped.Arena
	rows  int
}

func newBuilder(n *Network, in Input, team *kernels.Team, a *mapped.Arena) *builder {
	x := &input{Input: in, team: team, arena: a}
	if p := n.Spec.InputDropout; p > 0 {
		x.drop = &kernels.Dropout{Seed: n.Spec.Seed, Layer: 0, P: p, IDs: in.IDs}
	}
	return &builder{net: n, in: x, team: team, arena: a, rows: len(in.IDs)}
}

func (b *builder) layer(l int) Layer { return b.net.Spec.kind().layer(b, l) }

// kept is ÂX for the first layer where it is kept, nil for all others.
func (b *builder) kept(l int) *kept {
	if l > 0 {
		return nil
	}
	return b.net.kept
}

// hidden is what layer l applies its weights to.
func (b *builder) hidden(l int) hidden {
	h := hidden{team: b.team, kept: b.kept(l), count: b.rows, in: b.net.Spec.Dims[l]}
	if l == 0 {
		h.input = b.in
	}
	return h
}

// linear is the i-th weight of layer l.
func (b *builder) linear(l, i int) linear {
	p := b.net.Spec.layerParams(l)[i]
	return linear{p.Of(b.net.Weights), p.Of(b.net.Grad)}
}

func (b *builder) room(cols int) []float32 {
	return mapped.Make[float32](b.arena, b.rows*cols)
}

func (b *builder) dense(l int) dense {
	s := b.net.Spec
	d := dense{
		team: b.team, rows: b.rows,
		in: s.Dims[l], out: s.Dims[l+1],
		last: l == s.Layers()-1,
	}
	for i, p := range s.layerParams(l) {
		// The first matrix and the first bias.
		switch w := b.linear(l, i); {
		case p.Bias && d.b == nil:
			d.b, d.gb = w.w, w.gw
		case !p.Bias && d.w == nil:
			d.w, d.gw = w.w, w.gw
		}
	}
	d.drop, _ = b.dropouts(l)
	return d
}

// dropouts are those of layer l's output and of its attention, nil where
// nothing is dropped.
func (b *builder) dropouts(l int) (output, attention *kernels.Dropout) {
	s := b.net.Spec
	if s.Dropout > 0 && l < s.Layers()-1 {
		// Layer 0 is the input's, so that no two masks share a counter.
		output = &kernels.Dropout{Seed: s.Seed, Layer: l + 1, P: s.Dropout, IDs: b.in.IDs}
	}
	if s.AttentionDropout > 0 {
		attention = &kernels.Dropout{Seed: s.Seed, Layer: l + attentionStream, P: s.AttentionDropout, IDs: b.in.LocalIDs}
	}
	return output, attention
}

// scratch is room that does not grow with the vertices.
func (b *builder) scratch(n int) []float32 { return mapped.Make[float32](b.arena, n) }
