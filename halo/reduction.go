package halo

import (
	"siafu/graph"
	"siafu/graph/shard"
	"siafu/halo/comm"
	"siafu/internal/fault"
	"siafu/internal/mapped"
)

// Reduction is a shard whose rows are summed before they are sent, if that makes fewer rows.
// The edges from rank p to rank q need one row for each vertex of a vertex cover of these edges.
// Rank p sends the rows of sources in the cover unchanged. For each destination in the cover, p sends
// the sum of the rows of the destination's sources outside the cover. Such a sum is a row of p and a
// ghost of q with one edge, which leads to the destination.
//
// For sparse matrix-vector products, a vertex cover of each block between two parts is known
// to give the fewest words (Kayaaslan, Aykanat and Uçar, SIAM J. Sci. Comput. 40, 2018); here
// words are rows.
type Reduction struct {
	// Plan sends row Own+k where it sends sum k.
	Plan *Plan
	// In are the edges from ghosts of Plan to own vertices.
	In shard.Edges
	// Sums has a row for each sum: the own vertices whose scaled rows it adds. SumsOf is the
	// transpose: the sums that contain a vertex, empty without sums.
	Sums, SumsOf graph.CSR
	// Rows is the number of ghosts of the shard, that is, the number of rows without sums.
	Rows int
	// Bytes is the number of bytes that this rank has sent to agree on the reduction.
	Bytes int64

	ghosts []int32 // the shard's ghost of each ghost of Plan, or sum
}

// sum marks a sum in place of a ghost.
const sum = -1

// Plain returns the trivial reduction of a shard, without sums.
func Plain(s *shard.Shard) *Reduction {
	return &Reduction{
		Plan: NewPlan(s), In: s.GhostEdges(), Rows: s.NumGhosts(),
		Sums: graph.CSR{Offsets: []int64{0}},
	}
}

// Alone returns the reduction of a shard to its own vertices and the edges between them. It
// sends no rows.
func Alone(s *shard.Shard) *Reduction {
	r, none := Plain(s), make([]int64, s.Parts+1)
	r.Plan = &Plan{Parts: s.Parts, Own: s.NumOwn(), SendStart: none, RecvStart: none, OwnIDs: s.Own}
	r.In = shard.Edges{Begin: s.InOwnEnd, End: s.InOwnEnd, Cols: s.In.Cols, Weights: s.Weights, Base: s.NumOwn(), Featured: s.EdgeDim > 0}
	r.Rows = 0
	return r
}

// SumCosts decide where sums pay: less their cost, they must save at least one row, and the
// fraction MinSaving of the rows from one rank to another. The zero value minimizes rows.
type SumCosts struct {
	MinSaving float64
	Sum, Edge float64 // cost, in rows, of a sum and of an edge gathered into one
}

// most returns the largest worthwhile number of rows after the reduction.
func (t SumCosts) most(rows int) int { return min(rows-1, int((1-t.MinSaving)*float64(rows))) }

// Reduce reduces a shard. Two ranks exchange one row per vertex of a vertex cover where that
// pays, else all ghosts. Memory comes from a. team finds covers, which depend only on the
// edges. Collective.
func Reduce(c comm.Comm, s *shard.Shard, t SumCosts, team Parallel, a *mapped.Arena) (*Reduction, error) {
	h := &ghostHolder{shard: s, terms: t, arena: a, covers: make([]vertexCover, s.Parts), requests: make([]rowRequest, s.Parts)}
	h.findCovers(team)
	messages := h.reduce()
	answers, err := comm.Swap(c, messages, func(q int) uint64 { return uint64(longest(s, q)) })
	if err != nil {
		return nil, err
	}
	o := newOwner(s)
	for q, message := range answers {
		if err := o.take(q, message); err != nil {
			return nil, fault.New(fault.Runtime, "halo", "", "rank %d: corrupt request for sums from rank %d: %v", c.Rank(), q, err)
		}
	}
	r := o.reduction(a)
	h.complete(r)
	for _, m := range messages {
		r.Bytes += int64(8 + 4*len(m)) // with its length
	}
	return r, nil
}

// Scale maps a scale of own vertices and the shard's ghosts to own vertices and the ghosts of
// Plan. Sums get 1, because they have been scaled. It returns nil for nil.
func (r *Reduction) Scale(col []float32, a *mapped.Arena) []float32 {
	if col == nil || r.ghosts == nil {
		return col
	}
	own := r.Plan.Own
	scale := mapped.Make[float32](a, own+len(r.ghosts))
	copy(scale, col[:own])
	for k, g := range r.ghosts {
		scale[own+k] = 1
		if g != sum {
			scale[own+k] = col[own+int(g)]
		}
	}
	return scale
}

// longest bounds the numbers in a message from rank q: a head, the rows, and for each of their
// edges a sum with its length, id and source.
func longest(s *shard.Shard, q int) int64 {
	rows := s.SendRows[s.SendStart[q]:s.SendStart[q+1]]
	n := int64(messageHead + len(rows))
	for _, r := range rows {
		n += 3 * int64(s.OutDegree[r])
	}
	return n
}
