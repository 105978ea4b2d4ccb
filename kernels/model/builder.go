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

func (b *builder) layer(l int) Layer {
	s := b.net.Spec
	d := b.dense(l)
	gathers := s.Propagates()
	var in *input
	var gradIn []float32
	if l == 0 {
		in = b.in
	} else {
		gradIn = b.room(d.in)
	}
	// A perceptron over sparse features multiplies them as they are.
	sparse := l == 0 && b.in.Features.Sparse != nil && !gathers
	if s.Orders[l] == ApplyFirst || sparse {
		return &applyFirst{dense: d, input: in, gathers: gathers, emitted: b.room(d.out), gradIn: gradIn}
	}
	return &gatherFirst{dense: d, input: in, gathers: gathers, h: b.room(d.out), gradIn: gradIn}
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
	for _, p := range s.Params() {
		switch {
		case p.Layer != l:
		case p.Bias:
			d.b, d.gb = p.Of(b.net.Weights), p.Of(b.net.Grad)
		default:
			d.w, d.gw = p.Of(b.net.Weights), p.Of(b.net.Grad)
		}
	}
	if s.Dropout > 0 && !d.last {
		// Layer 0 is the input's, so that no two masks share a counter.
		d.drop = &kernels.Dropout{Seed: s.Seed, Layer: l + 1, P: s.Dropout, IDs: b.in.IDs}
	}
	return d
}
