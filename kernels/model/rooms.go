package model

import (
	"siafu/graph/mapped"
	"siafu/kernels"
)

// rooms are the matrices of all own vertices of a rank. Networks of intervals
// ask for them in the same order, and each gets its rows of the same matrix.
type rooms struct {
	ops   kernels.Ops
	arena *mapped.Arena
	rows  int
	list  []kernels.Mat
}

// of is where the network of the rows [lo, hi) gets its part.
func (r *rooms) of(lo, hi int) *room { return &room{rooms: r, lo: lo, hi: hi} }

// room is one network's part of all matrices.
type room struct {
	*rooms
	lo, hi int
	next   int // matrix
}

// matrix is the next [rows x cols] of zeros, whose Whole is that of all intervals.
func (r *room) matrix(cols int) kernels.Mat {
	if r.next == len(r.list) {
		r.list = append(r.list, kernels.NewMat(r.ops, r.arena, r.rows, cols))
	}
	whole := r.list[r.next]
	if whole.Cols != cols {
		panic("model: layers of two intervals ask for different matrices")
	}
	r.next++
	return whole.Part(r.lo, r.hi)
}
