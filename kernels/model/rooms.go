package model

import "siafu/graph/mapped"

// rooms are the matrices of all own vertices of a rank. Networks of intervals
// ask for them in the same order, and each gets its rows of the same matrix.
type rooms struct {
	arena *mapped.Arena
	rows  int
	list  [][]float32
}

// of is where the network of the rows [lo, hi) gets its part.
func (r *rooms) of(lo, hi int) *room { return &room{rooms: r, lo: lo, hi: hi} }

// room is one network's part of all matrices.
type room struct {
	*rooms
	lo, hi int
	next   int // matrix
}

// matrix is the next [rows x cols] of zeros. Its capacity reaches to the end of
// the matrix that it is a part of.
func (r *room) matrix(cols int) []float32 {
	if r.next == len(r.list) {
		r.list = append(r.list, mapped.Make[float32](r.arena, r.rows*cols))
	}
	whole := r.list[r.next]
	if len(whole) != r.rows*cols {
		panic("model: layers of two intervals ask for different matrices")
	}
	r.next++
	return whole[r.lo*cols : r.hi*cols]
}
