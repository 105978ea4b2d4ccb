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

// localHalo has the ghosts whose rows a rank computes itself: first those of the shard, or some of
// them, whose rows it computes for all local layers, then, hop by hop, the other vertices from
// which their rows are computed.
type localHalo struct {
	ids   []uint32     // dataset ids
	ends  []int        // by hop
	plans []*halo.Plan // by hop: which rows come from which rank
	// with several hops: edges into all but the last hop, whose own vertices are the ghosts, and whose ghosts
	// are own vertices
	edges *shard.Shard

	// If some ghosts of the last local layer are received: the place here of each ghost of the
	// shard, -1 without one, and the plan of the received rows, in the shard's order.
	near     []int32
	received *halo.Plan
}

// newLocalHalo finds the ghosts whose rows are computed here. Memory comes from a. Collective over
// the graph ranks.
func (e *Engine) newLocalHalo(a *mapped.Arena) (*localHalo, error) {
	sh := e.Shard
	if e.computesGhosts() {
		e.Fault.At(inject.Fetch, 0)
	}
	h := &localHalo{ids: sh.Ghosts, ends: []int{sh.NumGhosts()}, plans: []*halo.Plan{halo.NewPlan(sh)}}
	if !e.computesGhosts() || e.Network.LocalLayers < 2 && e.Network.LocalShare == 0 {
		return h, nil
	}
	began, scratch := time.Now(), mapped.NewArena()
	defer scratch.Free()
	o := e.sampling()
	o.Self, o.Fanouts = false, slices.Repeat([]int{math.MaxInt32}, e.Network.LocalLayers-1)
	source, err := sample.NewNeighbours(o, scratch)
	if err != nil {
		return nil, err
	}
	ghosts := slices.Clone(source.Ghosts())
	f, err := source.Around(ghosts)
	if err != nil {
		return nil, err
	}
	some := e.computedGhosts()
	places, err := h.number(e, f, h.hops(f, ghosts, some, e.Network.LocalLayers))
	if err != nil {
		return nil, err
	}
	if err := h.fetchIDs(e); err != nil {
		return nil, err
	}
	if e.Network.LocalShare > 0 {
		if err := h.receive(e, ghosts, some, places); err != nil {
			return nil, err
		}
	}
	sums := []int64{int64(len(h.ids)), 0}
	if e.Network.LocalLayers > 1 {
		if h.edges, err = h.shard(e, f, places, a.For(GhostEdges)); err != nil {
			return nil, err
		}
		sums[1] = int64(len(h.edges.In.Cols))
	}
	if err := world.SumInt64s(e.Peers, sums); err != nil {
		return nil, err
	}
	e.Reporter.Note(fmt.Sprintf("local_halo hops=%d vertices=%d edges=%d seconds=%.3f\n", len(h.ends), sums[0],
		sums[1], time.Since(began).Seconds()))
	return h, nil
}

// unneeded is the hop of a vertex from which no row is computed here.
const unneeded = math.MaxInt

// hops returns the hop of each row of a field around the shard's ghosts: 0 for those of some, which
// are computed in all local layers. The other ghosts of the shard are
// computed in all layers but the last. From there on, hops follow the edges.
func (h *localHalo) hops(f *sample.Field, ghosts []sample.Vertex, some []bool, layers int) []int {
	list := slices.Repeat([]int{unneeded}, len(f.Rows))
	for g := range ghosts {
		if some[g] {
			list[g] = 0
		} else if layers > 1 {
			list[g] = 1
		}
	}
	for hop := range layers - 1 {
		into := f.Layers[0]
		for i := range into.Offsets[1:] {
			if list[i] > hop {
				continue
			}
			for _, u := range into.Sources[into.Offsets[i]:into.Offsets[i+1]] {
				list[u] = min(list[u], hop+1)
			}
		}
	}
	return list
}

// number sets the ends and plans of hops, and returns the place of each row of a field: that of a
// ghost, -1-row for an own vertex, or unneeded. Ghosts of a hop are sorted by owner and row.
// Collective over the graph ranks.
func (h *localHalo) number(e *Engine, f *sample.Field, hops []int) (places []int, err error) {
	places = slices.Repeat([]int{unneeded}, len(f.Rows))
	byHop := make([][]int, e.Network.LocalLayers)
	for i, v := range f.Rows {
		switch hop := hops[i]; {
		case hop == unneeded:
		case int(v.Rank) == e.Peers.Rank():
			places[i] = -1 - int(v.Row)
		default:
			byHop[hop] = append(byHop[hop], i)
		}
	}
	first := 0
	for hop, list := range byHop {
		if hop > 0 { // the shard's ghosts have their order
			slices.SortFunc(list, func(i, j int) int {
				return cmp.Or(cmp.Compare(f.Rows[i].Rank, f.Rows[j].Rank), cmp.Compare(f.Rows[i].Row, f.Rows[j].Row))
			})
		}
		rows := make([]sample.Vertex, len(list))
		for n, i := range list {
			places[i], rows[n] = first+n, f.Rows[i]
		}
		first += len(list)
		if hop == 0 && e.Network.LocalShare == 0 {
			continue // all of the shard's ghosts, along its plan
		} else if hop == 0 {
			h.ends, h.plans = nil, nil
		}
		p, err := e.request(rows)
		if err != nil {
			return nil, err
		}
		h.ends, h.plans = append(h.ends, first), append(h.plans, p)
	}
	return places, nil
}

// request returns the plan of receiving rows, which are sorted by rank, from their owners.
// Collective over the graph ranks.
func (e *Engine) request(list []sample.Vertex) (*halo.Plan, error) {
	parts := e.Peers.Size()
	p := &halo.Plan{Parts: parts, Own: e.Shard.NumOwn(), Ghosts: len(list), SendStart: make([]int64, parts+1),
		RecvStart: make([]int64, parts+1), OwnIDs: e.Shard.Own}
	messages := make([][]uint32, parts)
	for _, v := range list {
		messages[v.Rank] = append(messages[v.Rank], v.Row)
	}
	for q, rows := range messages {
		p.RecvStart[q+1] = p.RecvStart[q] + int64(len(rows))
	}
	lists, err := comm.Swap(e.Peers, messages, func(int) uint64 { return uint64(p.Own) })
	if err != nil {
		return nil, err
	}
	for q, rows := range lists {
		if len(rows) > 0 && int(slices.Max(rows)) >= p.Own {
			return nil, fault.New(fault.Runtime, "exchange", "", "rank %d requests row %d of %d", q, slices.Max(rows), p.Own)
		}
		p.SendRows = append(p.SendRows, rows...)
		p.SendStart[q+1] = int64(len(p.SendRows))
	}
	return p, nil
}

// computedGhosts selects the ghosts whose rows of the last local layer are computed: of each
// owner's, the configured share with the fewest edges, because a row takes as long to compute as it
// has edges. Without a share it selects all.
func (e *Engine) computedGhosts() []bool {
	share, sh := e.Network.LocalShare, e.Shard
	some := slices.Repeat([]bool{share == 0}, sh.NumGhosts())
	if share == 0 {
		return some
	}
	degrees := sh.InDegree[sh.NumOwn():]
	for q := range sh.Parts {
		lo, hi := int(sh.GhostStart[q]), int(sh.GhostStart[q+1])
		list := make([]int, hi-lo)
		for k := range list {
			list[k] = lo + k
		}
		slices.SortStableFunc(list, func(g, h int) int { return cmp.Compare(degrees[g], degrees[h]) })
		for _, g := range list[:ghostShare(hi-lo, share)] {
			some[g] = true
		}
	}
	return some
}

// ghostShare returns the number of computed ghosts of an owner's.
func ghostShare(ghosts int, share float64) int { return int(math.Round(share * float64(ghosts))) }

// receive sets the places of the shard's ghosts, and the plan of those of the last local layer that
// are received. Collective over the graph ranks.
func (h *localHalo) receive(e *Engine, ghosts []sample.Vertex, some []bool, places []int) (err error) {
	var rest []sample.Vertex
	var ids []uint32
	h.near = make([]int32, len(ghosts))
	for g, v := range ghosts {
		h.near[g] = -1
		if places[g] != unneeded {
			h.near[g] = int32(places[g])
		}
		if !some[g] {
			rest, ids = append(rest, v), append(ids, e.Shard.Ghosts[g])
		}
	}
	if h.received, err = e.request(rest); err == nil {
		h.received.GhostIDs = ids
	}
	return err
}

// fetchIDs fetches the dataset ids of all ghosts. Collective over the graph ranks.
func (h *localHalo) fetchIDs(e *Engine) (err error) {
	h.ids = make([]uint32, h.ends[len(h.ends)-1])
	err = fetchRows(e, h, h.ids, e.Shard.Own, 1)
	first := 0
	for k, p := range h.plans {
		p.GhostIDs, first = h.ids[first:h.ends[k]], h.ends[k]
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
		Labels: make([]int32, n), Split: make([]uint8, n), EdgeDim: e.Network.Design.EdgeDim,
	}
	s.EdgeMeans = mapped.Make[float32](a, n*s.EdgeDim)
	err := fetchRows(e, h, s.EdgeMeans, sh.EdgeMeans, s.EdgeDim)
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
	s.EdgeFeatures = mapped.Make[float32](a, int(edges)*s.EdgeDim)
	type edge struct {
		source uint32
		weight float32
		at     int64 // position in the field
	}
	var list []edge
	at := int64(0)
	for g := range h.ids {
		list = list[:0]
		ghosts := 0
		if len(h.ends) > 1 && g < h.ends[len(h.ends)-2] {
			for k := into.Offsets[rows[g]]; k < into.Offsets[rows[g]+1]; k++ {
				x := edge{weight: 1, at: k}
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
			copy(s.EdgeFeatures[int(at)*s.EdgeDim:int(at+1)*s.EdgeDim], into.Features[int(x.at)*s.EdgeDim:])
			at++
		}
		s.InOwnEnd[g], s.In.Offsets[g+1] = at-int64(len(list)-ghosts), at
	}
}

// localIDs returns the dataset ids of the ghosts and of own vertices, in a: the local ids along
// edges into ghosts. It returns nil without such edges.
func (h *localHalo) localIDs(e *Engine, a *mapped.Arena) []uint32 {
	if e.Network.LocalLayers < 2 {
		return nil
	}
	ids := mapped.Make[uint32](a.For(VertexIDs), len(h.ids)+e.Shard.NumOwn())
	a.Fill(func() { copy(ids[copy(ids, h.ids):], e.Shard.Own) })
	return ids
}
