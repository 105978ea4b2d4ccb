package model

import "siafu/kernels"

// Batch returns a frame on rows [lo, lo+n) of a store for vertices that are not the store's: n
// vertices of in, from vertex on. Mini-batches can thus share one store. Gradients and scratch
// are those of like, a frame of the same store, or new ones without like. cached is ÂX of the
// vertices in, required with Spec.CacheInput.
func (s *Store) Batch(in Vertices, vertex, n, lo int, cached kernels.Mat, ops kernels.Ops, weights kernels.Mat, like *Frame) *Frame {
	f := like
	if f == nil {
		f = s.newFrame(ops, weights)
	} else {
		f = &Frame{Network: s.Network, Weights: like.Weights, Grad: like.Grad, scratch: like.scratch}
	}
	s.layOutFrame(f, in.part(vertex, vertex+n), lo, ops)
	for at := range f.own {
		if !cached.IsNil() {
			f.own[at][0][Gathered] = cached.Part(vertex, vertex+n)
		}
	}
	return f
}

// Part returns vertices [lo, hi) of in.
func (in Vertices) Part(lo, hi int) Vertices { return in.part(lo, hi) }

// Vertices returns the vertices of the store.
func (s *Store) Vertices() Vertices { return s.input }
