package halo

import (
	"slices"

	"siafu/graph/shard"
	"siafu/internal/mapped"
)

// A message to an owner requests rows for the holder's ghosts:
//
//	rows that are sent as they are, sums, sources of all sums    messageHead numbers
//	the rows, as numbers in the owner's send list, ascending
//	the dataset id of each sum's destination
//	how many sources each sum has
//	the sources, as numbers in the send list
//
// An empty message asks for all rows as they are.
const messageHead = 3

// ghostHolder is a rank in the role of receiver.
type ghostHolder struct {
	shard  *shard.Shard
	terms  SumCosts
	arena  *mapped.Arena
	covers []vertexCover // by owner; without Sources: all rows are sent as they are
	// The requests, by owner.
	requests []rowRequest
	// The ghosts of the reduction.
	start  []int64
	ghosts []int32 // the shard's, or sum
	ids    []uint32
	in     shard.Edges
}

// rowRequest are the parts of a message.
type rowRequest struct{ rows, ids, lengths, sources []uint32 }

// A cover is searched in leastPhases phases, or in as many more as visit mostEdges edges.
// After k phases it exceeds the minimum by at most one in k.
const (
	leastPhases = 16
	mostEdges   = 1 << 29
)

// findCovers finds a cover of the edges from each rank.
func (h *ghostHolder) findCovers(team Parallel) {
	scratch := mapped.NewArena()
	defer scratch.Free()
	s := h.shard
	edges := s.GhostEdges().BySource(scratch)
	team.Run(s.Parts, 1, func(lo, hi int) {
		for q := lo; q < hi; q++ {
			from, to := s.GhostStart[q], s.GhostStart[q+1]
			if from == to {
				continue
			}
			b := bipartite{Dests: s.NumOwn(), Offsets: edges.Offsets[from : to+1], Cols: edges.Cols}
			size := b.Offsets[to-from] - b.Offsets[0]
			c := findCover(b, int(max(leastPhases, mostEdges/size)), h.terms.most(b.Sources()))
			if h.terms.worthwhile(b, c) {
				h.covers[q] = c
			}
		}
	})
}

// worthwhile reports whether a cover saves enough rows.
func (t SumCosts) worthwhile(b bipartite, c vertexCover) bool {
	sums, edges := c.Size, int64(0)
	for u, sent := range c.Sources {
		if sent {
			sums--
		} else {
			edges += b.Offsets[u+1] - b.Offsets[u]
		}
	}
	price := t.Sum*float64(sums) + t.Edge*float64(edges)
	return float64(c.Size)+price <= float64(t.most(b.Sources()))
}

// sends reports whether ghost g of owner q is sent unchanged.
func (h *ghostHolder) sends(q int, g int64) bool {
	c := h.covers[q]
	return c.Sources == nil || c.Sources[g-h.shard.GhostStart[q]]
}

// reduce renumbers the ghosts and makes the messages.
func (h *ghostHolder) reduce() [][]uint32 {
	s := h.shard
	messages := make([][]uint32, s.Parts)
	if !slices.ContainsFunc(h.covers, func(c vertexCover) bool { return c.Sources != nil }) {
		return messages
	}
	h.collectRequests()
	h.numberGhosts()
	h.connectEdges()
	for q, w := range h.requests {
		if h.covers[q].Sources == nil {
			continue
		}
		m := []uint32{uint32(len(w.rows)), uint32(len(w.ids)), uint32(len(w.sources))}
		m = append(append(m, w.rows...), w.ids...)
		messages[q] = append(append(m, w.lengths...), w.sources...)
	}
	h.requests = nil
	return messages
}

// collectRequests lists the requests to each owner.
func (h *ghostHolder) collectRequests() {
	s := h.shard
	for q := range s.Parts {
		for g := s.GhostStart[q]; g < s.GhostStart[q+1]; g++ {
			if h.sends(q, g) {
				h.requests[q].rows = append(h.requests[q].rows, uint32(g-s.GhostStart[q]))
			}
		}
	}
	h.forEachSource(func(v, q int, ghosts []uint32) {
		w, before := &h.requests[q], len(h.requests[q].sources)
		for _, u := range ghosts {
			if g := int64(u) - int64(s.NumOwn()); !h.sends(q, g) {
				w.sources = append(w.sources, uint32(g-s.GhostStart[q]))
			}
		}
		if n := len(w.sources) - before; n > 0 {
			w.ids, w.lengths = append(w.ids, s.Own[v]), append(w.lengths, uint32(n))
		}
	})
}

// forEachSource calls f for the ghosts of each owner that each own vertex gathers from.
func (h *ghostHolder) forEachSource(f func(v, q int, ghosts []uint32)) {
	s, in := h.shard, h.shard.GhostEdges()
	for v := range in.Begin {
		row, q := in.Cols[in.Begin[v]:in.End[v]], 0
		for len(row) > 0 {
			for int64(row[0])-int64(s.NumOwn()) >= s.GhostStart[q+1] {
				q++
			}
			n := 1
			for n < len(row) && int64(row[n])-int64(s.NumOwn()) < s.GhostStart[q+1] {
				n++
			}
			f(v, q, row[:n])
			row = row[n:]
		}
	}
}

// numberGhosts numbers ghosts: each owner's rows, then its sums.
func (h *ghostHolder) numberGhosts() {
	s := h.shard
	h.start = make([]int64, s.Parts+1)
	for q, w := range h.requests {
		h.start[q+1] = h.start[q] + int64(len(w.rows)+len(w.ids))
	}
	total := int(h.start[s.Parts])
	h.ghosts, h.ids = mapped.Make[int32](h.arena, total), mapped.Make[uint32](h.arena, total)
	for q, w := range h.requests {
		at := h.start[q]
		for i, r := range w.rows {
			g := s.GhostStart[q] + int64(r)
			h.ghosts[at+int64(i)], h.ids[at+int64(i)] = int32(g), s.Ghosts[g]
		}
		at += int64(len(w.rows))
		for i, id := range w.ids {
			h.ghosts[at+int64(i)], h.ids[at+int64(i)] = sum, id
		}
	}
}

// connectEdges makes the edges from the new ghosts.
func (h *ghostHolder) connectEdges() {
	s := h.shard
	edges, places := 0, make([]uint32, s.NumGhosts()) // of ghosts that are sent unchanged
	next := make([]uint32, s.Parts)                   // place of the next sum
	for q := range next {
		next[q] = uint32(h.start[q]) + uint32(len(h.requests[q].rows))
		edges += len(h.requests[q].ids)
	}
	for k, g := range h.ghosts {
		if g != sum {
			places[g] = uint32(k)
		}
	}
	h.forEachSource(func(_, q int, ghosts []uint32) {
		for _, u := range ghosts {
			if h.sends(q, int64(u)-int64(s.NumOwn())) {
				edges++
			}
		}
	})
	h.in = h.fill(edges, places, next)
}

func (h *ghostHolder) fill(edges int, places, next []uint32) shard.Edges {
	own := h.shard.NumOwn()
	cols, offsets := mapped.Make[uint32](h.arena, edges), mapped.Make[int64](h.arena, own+1)
	at := 0
	h.forEachSource(func(v, q int, ghosts []uint32) {
		summed := false
		for _, u := range ghosts {
			g := int64(u) - int64(own)
			if !h.sends(q, g) {
				summed = true
				continue
			}
			cols[at] = uint32(own) + places[g]
			at++
		}
		if summed {
			cols[at] = uint32(own) + next[q]
			next[q]++
			at++
		}
		offsets[v+1] = int64(at)
	})
	for v := range own { // rows without ghosts
		offsets[v+1] = max(offsets[v+1], offsets[v])
	}
	return shard.Edges{Begin: offsets[:own], End: offsets[1:], Cols: cols, Base: own, Sources: len(h.ghosts)}
}

// complete sets the holder's side of a reduction.
func (h *ghostHolder) complete(r *Reduction) {
	r.Rows = h.shard.NumGhosts()
	if h.ghosts == nil {
		r.In = h.shard.GhostEdges()
		return
	}
	r.In, r.ghosts = h.in, h.ghosts
	r.Plan.Ghosts, r.Plan.RecvStart, r.Plan.GhostIDs = len(h.ghosts), h.start, h.ids
}
