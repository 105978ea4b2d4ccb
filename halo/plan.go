package halo

import (
	"siafu/graph/mapped"
	"siafu/graph/shard"
	"sort"
)

// Plan says which rows go where, in flat arrays: to rank q go the own rows
// SendRows[SendStart[q]:SendStart[q+1]], from rank q come the ghosts
// RecvStart[q]..RecvStart[q+1]-1. Backward the roles are swapped. A plan is
// immutable; the plans of all ranks fit together, because shards do.
//
// A plan that sends sums of own rows (see Reduction) numbers them behind own
// rows: row Own+k is sum k. To rank q go own rows first and then sums.
type Plan struct {
	Parts             int
	Own, Sums, Ghosts int
	SendStart         []int64  // [Parts+1]
	SendRows          []uint32 // own rows and sums, in the order of the receiver's ghosts
	RecvStart         []int64  // [Parts+1], of ghosts
	OwnIDs            []uint32 // dataset ids of the own rows, and of the destinations of sums
	GhostIDs          []uint32 // dataset ids of the ghosts; of sums, of their destinations
}

// NewPlan is the plan of a shard; it shares the shard's arrays and lives as
// long.
func NewPlan(s *shard.Shard) *Plan {
	return &Plan{
		Parts: s.Parts, Own: s.NumOwn(), Ghosts: s.NumGhosts(),
		SendStart: s.SendStart, SendRows: s.SendRows, RecvStart: s.GhostStart,
		OwnIDs: s.Own, GhostIDs: s.Ghosts,
	}
}

// SendIDs are the dataset ids of the rows of SendRows. Memory comes from a.
func (p *Plan) SendIDs(a *mapped.Arena) []uint32 {
	ids := mapped.Make[uint32](a, len(p.SendRows))
	a.Fill(func() {
		for i, r := range p.SendRows {
			ids[i] = p.OwnIDs[r]
		}
	})
	return ids
}

// Boundary is where in SendRows those of own rows lo..hi-1 are that go to rank q.
func (p *Plan) Boundary(q, lo, hi int) (from, to int) {
	start, end := int(p.SendStart[q]), int(p.SendStart[q+1])
	list := p.SendRows[start:end]
	at := func(v int) int {
		return start + sort.Search(len(list), func(k int) bool { return int(list[k]) >= v })
	}
	return at(lo), at(hi)
}
