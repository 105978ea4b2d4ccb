package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/comm"
	"siafu/halo/sample"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/ranks/inject"
	"siafu/ranks/world"
)

// localHalo has the ghosts whose rows a rank computes itself: first the shard's ghosts, then,
// hop by hop, the other vertices from which their rows are computed.
type localHalo struct {
	ids   []uint32     // dataset ids
	ends  []int        // by hop
	plans []*halo.Plan // by hop: which rows come from which rank
	edges *shard.Shard // with several hops: edges into all but the last hop, whose own vertices are the ghosts, and whose ghosts are own vertices
}

// newLocalHalo finds the ghosts whose rows are computed here. Memory comes from a. Collective over
// the graph ranks.
func (e *Engine) newLocalHalo(a *mapped.Arena) (*localHalo, error) {
	sh := e.Shard
	if e.computesGhosts() {
		e.Fault.At(inject.Fetch, 0)
	}
	h := &localHalo{ids: sh.Ghosts, ends: []int{sh.NumGhosts()}, plans: []*halo.Plan{halo.NewPlan(sh)}}
	if e.Network.LocalLayers < 2 || !e.computesGhosts() {
		return h, nil
	}
	began, scratch := time.Now(), mapped.NewArena()
	defer scratch.Free()
	o := e.sampling()
	o.Self, o.Fanouts, o.EdgeDim = false, slices.Repeat([]int{math.MaxInt32}, e.Network.LocalLayers-1), 0
	source, err := sample.NewNeighbours(o, scratch)
	if err != nil {
		return nil, err
	}
	f, err := source.Around(source.Ghosts())
	if err != nil {
		return nil, err
	}
	places := h.number(f, e.Peers.Rank())
	for k := range h.ends[1:] {
		if err := h.request(e, f, places, 1+k); err != nil {
			return nil, err
		}
	}
	if err := h.fetchIDs(e); err != nil {
		return nil, err
	}
	if h.edges, err = h.shard(e, f, places, a.For(GhostEdges)); err != nil {
		return nil, err
	}
	sums := []int64{int64(len(h.ids)), int64(len(h.edges.In.Cols))}
	if err := world.SumInt64s(e.Peers, sums); err != nil {
		return nil, err
	}
	e.Reporter.Note(fmt.Sprintf("local_halo hops=%d vertices=%d edges=%d seconds=%.3f\n", len(h.ends), sums[0], sums[1], time.Since(began).Seconds()))
	return h, nil
}

// number sets the ends of hops, and returns the place of each row of a field: that of a ghost, or
// -1-row for an own vertex. Ghosts of a hop are sorted by owner and row.
func (h *localHalo) number(f *sample.Field, rank int) []int {
	places, first := make([]int, len(f.Rows)), 0
	h.ends = h.ends[:0]
	for k := len(f.Ends) - 1; k >= 0; k-- {
		var hop []int
		for i := first; i < f.Ends[k]; i++ {
			if places[i] = -1 - int(f.Rows[i].Row); int(f.Rows[i].Rank) != rank {
				hop = append(hop, i)
			}
		}
		if first > 0 { // the shard's ghosts have their order
			slices.SortFunc(hop, func(i, j int) int {
				return cmp.Or(cmp.Compare(f.Rows[i].Rank, f.Rows[j].Rank), cmp.Compare(f.Rows[i].Row, f.Rows[j].Row))
			})
		}
		at := 0
		if len(h.ends) > 0 {
			at = h.ends[len(h.ends)-1]
		}
		for n, i := range hop {
			places[i] = at + n
		}
		h.ends, first = append(h.ends, at+len(hop)), f.Ends[k]
	}
	return places
}

// request makes the plan of a hop after the first. Collective over the graph ranks.
func (h *localHalo) request(e *Engine, f *sample.Field, places []int, hop int) error {
	lo, hi := h.ends[hop-1], h.ends[hop]
	rows, owners := make([]uint32, hi-lo), make([]uint32, hi-lo)
	for i, at := range places {
		if at >= lo && at < hi {
			rows[at-lo], owners[at-lo] = f.Rows[i].Row, f.Rows[i].Rank
		}
	}
	parts := e.Peers.Size()
	p := &halo.Plan{Parts: parts, Own: e.Shard.NumOwn(), Ghosts: hi - lo, SendStart: make([]int64, parts+1), RecvStart: make([]int64, parts+1), OwnIDs: e.Shard.Own}
	messages := make([][]uint32, parts)
	for q := range messages {
		from, _ := slices.BinarySearch(owners, uint32(q))
		to, _ := slices.BinarySearch(owners, uint32(q+1))
		messages[q], p.RecvStart[q+1] = rows[from:to], int64(to)
	}
	lists, err := comm.Swap(e.Peers, messages, func(int) uint64 { return uint64(p.Own) })
	if err != nil {
		return err
	}
	for q, list := range lists {
		if len(list) > 0 && int(slices.Max(list)) >= p.Own {
			return fault.New(fault.Runtime, "exchange", "", "rank %d requests row %d of %d", q, slices.Max(list), p.Own)
		}
		p.SendRows = append(p.SendRows, list...)
		p.SendStart[q+1] = int64(len(p.SendRows))
	}
	h.plans = append(h.plans, p)
	return nil
}

// fetchIDs fetches the dataset ids of all ghosts. Collective over the graph ranks.
func (h *localHalo) fetchIDs(e *Engine) (err error) {
	h.ids = make([]uint32, h.ends[len(h.ends)-1])
	err = fetchRows(e, h, h.ids, e.Shard.Own, 1)
	for k, p := range h.plans[1:] {
		p.GhostIDs = h.ids[h.ends[k]:h.ends[k+1]]
	}
	return err
}

// shard returns the shard of the edges into ghosts. Collective over the graph ranks.
func (h *localHalo) shard(e *Engine, f *sample.Field, places []int, a *mapped.Arena) (*shard.Shard, error) {
	sh, n := e.Shard, len(h.ids)
	s := &shard.Shard{
		Parts: 1, Vertices: sh.Vertices, Directed: true, Classes: sh.Classes, FeatureDim: sh.FeatureDim,
		Own: h.ids, Ghosts: sh.Own, GhostStart: []int64{0, int64(sh.NumOwn())}, SendStart: []int64{0, 0},
		In:       graph.CSR{Offsets: mapped.Make[int64](a, n+1)},
		InOwnEnd: mapped.Make[int64](a, n), Weighted: sh.Weighted && e.Network.Weighs(),
		Labels: make([]int32, n), Split: make([]uint8, n),
	}
	var err error
	degrees := func(own []uint32) (list []uint32) {
		list = mapped.Make[uint32](a, n+sh.NumOwn())
		copy(list[n:], own)
		err = cmp.Or(err, fetchRows(e, h, list[:n], own[:sh.NumOwn()], 1))
		return list
	}
	strengths := func(own []float32) (list []float32) {
		list = mapped.Make[float32](a, n+sh.NumOwn())
		copy(list[n:], own)
		err = cmp.Or(err, fetchRows(e, h, list[:n], own[:sh.NumOwn()], 1))
		return list
	}
	s.InDegree, s.OutDegree = degrees(sh.InDegree), degrees(sh.OutDegree)
	if s.Weighted {
		s.InStrength, s.OutStrength = strengths(sh.InStrength), strengths(sh.OutStrength)
	}
	if err != nil {
		return nil, err
	}
	h.connect(s, f, places, a)
	return s, nil
}

// connect sets the edges of a shard into ghosts: of each ghost first those from ghosts, then
// those from own vertices, both ascending.
func (h *localHalo) connect(s *shard.Shard, f *sample.Field, places []int, a *mapped.Arena) {
	into, edges := f.Layers[0], int64(0)
	rows := make([]int, len(h.ids)) // of the field
	for i := range into.Offsets[1:] {
		if g := places[i]; g >= 0 {
			rows[g] = i
			edges += into.Offsets[i+1] - into.Offsets[i]
		}
	}
	s.In.Cols = mapped.Make[uint32](a, int(edges))
	if s.Weighted {
		s.Weights = mapped.Make[float32](a, int(edges))
	}
	type edge struct {
		source uint32
		weight float32
	}
	var list []edge
	at := int64(0)
	for g := range h.ids {
		list = list[:0]
		ghosts := 0
		if len(h.ends) > 1 && g < h.ends[len(h.ends)-2] {
			for k := into.Offsets[rows[g]]; k < into.Offsets[rows[g]+1]; k++ {
				x := edge{weight: 1}
				if s.Weighted {
					x.weight = into.Weights[k]
				}
				if u := places[into.Sources[k]]; u >= 0 {
					x.source = uint32(u)
					ghosts++
				} else {
					x.source = uint32(len(h.ids) - 1 - u)
				}
				list = append(list, x)
			}
		}
		slices.SortFunc(list, func(x, y edge) int { return cmp.Compare(x.source, y.source) })
		for _, x := range list {
			s.In.Cols[at] = x.source
			if s.Weighted {
				s.Weights[at] = x.weight
			}
			at++
		}
		s.InOwnEnd[g], s.In.Offsets[g+1] = at-int64(len(list)-ghosts), at
	}
}
