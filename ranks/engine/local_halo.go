package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
	"unsafe"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/halo/comm"
	"siafu/halo/sample"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
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

// fetchRows sets dst [ghosts x width] to rows of own [own x width] of their owners. Collective
// over the graph ranks.
func fetchRows[T mapped.Elem](e *Engine, h *localHalo, dst, own []T, width int) error {
	first, scratch := 0, mapped.NewArena()
	defer scratch.Free()
	for k, p := range h.plans {
		out := mapped.Make[T](scratch, len(p.SendRows)*width)
		for i, r := range p.SendRows {
			copy(out[i*width:(i+1)*width], own[int(r)*width:(int(r)+1)*width])
		}
		in := dst[first*width : h.ends[k]*width]
		if err := alltoall(e.Peers, out, scaleOffsets(p.SendStart, width), in, scaleOffsets(p.RecvStart, width)); err != nil {
			return err
		}
		first = h.ends[k]
	}
	return nil
}

// fetchGhostFeatures fetches the features of ghosts, if their rows are computed from them.
// Memory comes from a. Collective over the graph ranks.
func (e *Engine) fetchGhostFeatures(net *model.Network, a *mapped.Arena) (err error) {
	e.ghostFeatures = graph.Features{Rows: len(e.halo.ids), Dim: e.Shard.FeatureDim}
	if !e.computesGhosts() || !net.ReadsFeatures() {
		return nil
	}
	began := time.Now()
	if e.Shard.Features.Sparse != nil {
		e.ghostFeatures.Sparse, err = e.fetchSparse(a.For(GhostFeatures))
	} else {
		e.ghostFeatures.Dense = mapped.Make[float32](a.For(GhostFeatures), e.ghostFeatures.Rows*e.ghostFeatures.Dim)
		err = fetchRows(e, e.halo, e.ghostFeatures.Dense, e.Shard.Features.Dense, e.ghostFeatures.Dim)
	}
	if err != nil {
		return err
	}
	rows := []int64{int64(e.ghostFeatures.Rows)}
	if err := world.SumInt64s(e.Peers, rows); err != nil {
		return err
	}
	e.Reporter.Note(fmt.Sprintf("ghost_features rows=%d columns=%d seconds=%.3f\n", rows[0], e.ghostFeatures.Dim, time.Since(began).Seconds()))
	return nil
}

// fetchSparse fetches rows of sparse features.
func (e *Engine) fetchSparse(a *mapped.Arena) (*graph.SparseRows, error) {
	sh, x, h, scratch := e.Shard, e.Shard.Features.Sparse, e.halo, mapped.NewArena()
	defer scratch.Free()
	counts := make([]uint32, sh.NumOwn())
	for v := range counts {
		counts[v] = uint32(x.Offsets[v+1] - x.Offsets[v])
	}
	come := make([]uint32, len(h.ids))
	if err := fetchRows(e, h, come, counts, 1); err != nil {
		return nil, err
	}
	rows := &graph.SparseRows{Offsets: mapped.Make[int64](a, len(come)+1)}
	for g, n := range come {
		if int(n) > sh.FeatureDim {
			return nil, fault.New(fault.Runtime, "exchange", "", "vertex %d has %d features on another rank, want %d", h.ids[g], n, sh.FeatureDim)
		}
		rows.Offsets[g+1] = rows.Offsets[g] + int64(n)
	}
	n := int(rows.Offsets[len(come)])
	rows.Cols, rows.Vals = mapped.Make[uint32](a, n), mapped.Make[float32](a, n)
	first := 0
	for k, p := range h.plans {
		sent, total := mapped.Make[uint32](scratch, len(p.SendRows)), 0
		for i, r := range p.SendRows {
			sent[i] = counts[r]
			total += int(counts[r])
		}
		cols, vals := mapped.Make[uint32](scratch, total)[:0], mapped.Make[float32](scratch, total)[:0]
		for _, r := range p.SendRows {
			from, to := x.Offsets[r], x.Offsets[r+1]
			cols, vals = append(cols, x.Cols[from:to]...), append(vals, x.Vals[from:to]...)
		}
		outStart, inStart := nonZerosBefore(sent, p.SendStart), nonZerosBefore(come[first:h.ends[k]], p.RecvStart)
		lo, hi := rows.Offsets[first], rows.Offsets[h.ends[k]]
		if err := alltoall(e.Peers, cols, outStart, rows.Cols[lo:hi], inStart); err != nil {
			return nil, err
		}
		if err := alltoall(e.Peers, vals, outStart, rows.Vals[lo:hi], inStart); err != nil {
			return nil, err
		}
		first = h.ends[k]
	}
	return rows, nil
}

// ghostInputExchange fetches the ghosts' rows of cached inputs, some columns at a time; nil if
// ranks need none.
type ghostInputExchange struct {
	hops []*halo.Exchange
	ends []int
	ops  kernels.Ops
}

// newGhostInput allocates the cached ÂX of ghosts in a, if their rows are computed from it, and
// in scratch the means to fetch it.
func (e *Engine) newGhostInput(width int, a, scratch *mapped.Arena) *ghostInputExchange {
	if !e.computesGhosts() {
		return nil
	}
	g := &ghostInputExchange{ends: e.halo.ends, ops: e.workers.newOps()}
	e.ghostInput = model.NewInput(g.ops, len(e.halo.ids), e.Network.Dims[0], e.Config.Features == "bf16", a.For(GhostInput))
	for _, p := range e.halo.plans {
		g.hops = append(g.hops, halo.NewExchange(e.Peers, p, codec.Exact(e.Codecs[0]), e.packers, g.ops, scratch, width))
	}
	return g
}

// fetch receives columns [at, at+own.Cols) of the ghosts' dst from their owners, and sends the
// own ones [own x ·]. Collective over the graph ranks.
func (g *ghostInputExchange) fetch(dst kernels.Mat, at int, own kernels.Mat) error {
	if g == nil {
		return nil
	}
	first := 0
	for k, x := range g.hops {
		if err := x.BeginForward(own, halo.Key{}); err != nil {
			return err
		}
		rows, err := x.EndForward()
		if err != nil {
			return err
		}
		g.ops.PutColumns(dst.Part(first, g.ends[k]), at, rows)
		first = g.ends[k]
	}
	return nil
}

// sketchLocalHalo returns the halo of a sketch. Hops after the first are estimated: a ghost has
// as many neighbours as an own vertex, all of them different.
func (e *Engine) sketchLocalHalo(counts shard.Counts, a *mapped.Arena) *localHalo {
	sh := e.Shard
	h := &localHalo{ids: sh.Ghosts, ends: []int{sh.NumGhosts()}, plans: []*halo.Plan{halo.NewPlan(sh)}}
	if e.Network.LocalLayers < 2 || !e.computesGhosts() {
		return h
	}
	degree, edges := float64(counts.Edges)/float64(max(counts.Vertices, 1)), 0
	all := int(sh.Vertices) - sh.NumOwn()
	for hop, last := 1, 0; hop < e.Network.LocalLayers; hop++ {
		end := h.ends[hop-1]
		edges += int(degree * float64(end-last))
		more := min(int(degree*float64(end-last)), all-end)
		p := *h.plans[0]
		p.Ghosts, p.SendRows = more, mapped.Make[uint32](mapped.NewSketch(), more)
		h.ends, h.plans, last = append(h.ends, end+more), append(h.plans, &p), end
	}
	n := h.ends[len(h.ends)-1]
	h.ids, a = mapped.Make[uint32](mapped.NewSketch(), n), a.For(GhostEdges)
	head := shard.Shard{Parts: 1, Vertices: sh.Vertices, Directed: true, Weighted: sh.Weighted && e.Network.Weighs(), FeatureDim: sh.FeatureDim}
	h.edges = shard.Sketch(head, shard.Counts{Vertices: int64(n), Ghosts: int64(sh.NumOwn()), Edges: int64(edges), Cut: int64(edges / max(sh.Parts, 1))}, false, a)
	return h
}

// sketchGhostFeatures allocates the memory of fetchGhostFeatures. It assumes the same number
// of non-zeros per ghost as per own vertex.
func (e *Engine) sketchGhostFeatures(net *model.Network, a, scratch *mapped.Arena) {
	e.ghostFeatures = graph.Features{Rows: len(e.halo.ids), Dim: e.Shard.FeatureDim}
	if !e.computesGhosts() || !net.ReadsFeatures() {
		return
	}
	a = a.For(GhostFeatures)
	x, sent := e.Shard.Features.Sparse, 0
	for _, p := range e.halo.plans {
		sent += len(p.SendRows)
	}
	if x == nil {
		e.ghostFeatures.Dense = mapped.Make[float32](a, e.ghostFeatures.Rows*e.ghostFeatures.Dim)
		mapped.Make[float32](scratch, sent*e.ghostFeatures.Dim)
		return
	}
	each := float64(len(x.Cols)) / float64(max(e.Shard.NumOwn(), 1))
	mapped.Make[uint32](scratch, sent+int(2*each*float64(sent)))
	n := int(each * float64(e.ghostFeatures.Rows))
	e.ghostFeatures.Sparse = &graph.SparseRows{Offsets: mapped.Make[int64](a, e.ghostFeatures.Rows+1), Cols: mapped.Make[uint32](a, n), Vals: mapped.Make[float32](a, n)}
}

// scaleOffsets converts positions of rows to positions of numbers, width per row.
func scaleOffsets(rows []int64, width int) []int64 {
	list := slices.Clone(rows)
	for q := range list {
		list[q] *= int64(width)
	}
	return list
}

// nonZerosBefore returns, for each row in start, the number of non-zeros before it; counts has
// the non-zeros of each row.
func nonZerosBefore(counts []uint32, start []int64) []int64 {
	list, sum, row := slices.Clone(start), int64(0), int64(0)
	for q, first := range start {
		for ; row < first; row++ {
			sum += int64(counts[row])
		}
		list[q] = sum
	}
	return list
}

// alltoall sends out[outStart[q]:outStart[q+1]] to each rank q, and receives
// in[inStart[q]:inStart[q+1]] from it. Collective.
func alltoall[T mapped.Elem](c world.Comm, out []T, outStart []int64, in []T, inStart []int64) error {
	bytes := func(start []int64) (list []int) {
		for q := range start[1:] {
			list = append(list, int(start[q+1]-start[q])*int(unsafe.Sizeof(*new(T))))
		}
		return list
	}
	r, err := c.Ialltoallv(mapped.Bytes(out), bytes(outStart), mapped.Bytes(in), bytes(inStart))
	if err != nil {
		return err
	}
	return r.Wait()
}
