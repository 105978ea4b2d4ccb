package halo

import (
	"siafu/graph/shard"
	"siafu/internal/mapped"
	"sort"
)

// Plan stores the rows to send and receive in flat arrays. The own rows
// SendRows[SendStart[q]:SendStart[q+1]] go to rank q, and the ghosts
// RecvStart[q]..RecvStart[q+1]-1 come from rank q. Backward, the roles are swapped. A plan
// is immutable. The plans of all ranks match, because their shards do.
//
// A plan with sums of own rows (see Reduction) numbers them after the own rows: row Own+k
// is sum k. Rank q receives own rows first and then sums.
type Plan struct {
	Parts             int
	Own, Sums, Ghosts int
	SendStart         []int64  // [Parts+1]
	SendRows          []uint32 // own rows and sums, in the order of the receiver's ghosts
	RecvStart         []int64  // [Parts+1], of ghosts
	OwnIDs            []uint32 // dataset ids of the own rows, and of the destinations of sums
	GhostIDs          []uint32 // dataset ids of the ghosts; of sums, of their destinations
}

// NewPlan returns the plan of a shard. It shares the shard's arrays and is valid as long as
// the shard.
func NewPlan(s *shard.Shard) *Plan {
	return &Plan{
		Parts: s.Parts, Own: s.NumOwn(), Ghosts: s.NumGhosts(),
		SendStart: s.SendStart, SendRows: s.SendRows, RecvStart: s.GhostStart,
		OwnIDs: s.Own, GhostIDs: s.Ghosts,
	}
}

// SendIDs returns the dataset ids of the rows of SendRows. Memory comes from a.
func (p *Plan) SendIDs(a *mapped.Arena) []uint32 {
	ids := mapped.Make[uint32](a, len(p.SendRows))
	a.Fill(func() {
		for i, r := range p.SendRows {
			ids[i] = p.OwnIDs[r]
		}
	})
	return ids
}

// Boundary returns the range in SendRows of the rows that rank q gets of own rows lo..hi-1.
func (p *Plan) Boundary(q, lo, hi int) (from, to int) {
	start, end := int(p.SendStart[q]), int(p.SendStart[q+1])
	list := p.SendRows[start:end]
	at := func(v int) int {
		return start + sort.Search(len(list), func(k int) bool { return int(list[k]) >= v })
	}
	return at(lo), at(hi)
}
