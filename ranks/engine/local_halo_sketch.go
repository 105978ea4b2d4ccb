package engine

import (
	"slices"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels/model"
)

// sketchLocalHalo returns the halo of a sketch, and the counts of its hops. They are estimated if
// the partitioning has not counted them.
func (e *Engine) sketchLocalHalo(counts shard.Counts, a *mapped.Arena) (*localHalo, []shard.Hop) {
	sh := e.Shard
	h := &localHalo{ids: sh.Ghosts, ends: []int{sh.NumGhosts()}, plans: []*halo.Plan{halo.NewPlan(sh)}}
	layers, share := e.Network.LocalLayers, e.Network.LocalShare
	hops, _ := counts.Halo(max(layers, 1), share, sh.Vertices)
	if layers < 2 && share == 0 || !e.computesGhosts() {
		return h, hops[:1]
	}
	shape := h.plans[0]
	plan := func(ghosts, rows int64) *halo.Plan {
		p := *shape
		p.Ghosts, p.SendRows = int(ghosts), mapped.Make[uint32](mapped.NewSketch(), int(rows))
		p.SendStart, p.RecvStart = make([]int64, p.Parts+1), make([]int64, p.Parts+1)
		p.SendStart[p.Parts], p.RecvStart[p.Parts] = rows, ghosts
		return &p
	}
	if share > 0 {
		h.received = plan(counts.Ghosts-hops[0].Ghosts, counts.SendRows-hops[0].SendRows)
	}
	n := 0
	h.ends = nil
	for k, hop := range hops {
		n += int(hop.Ghosts)
		h.ends = append(h.ends, n)
		switch {
		case k > 0:
			h.plans = append(h.plans, plan(hop.Ghosts, hop.SendRows))
		case share > 0:
			h.plans[0] = plan(hop.Ghosts, hop.SendRows)
		}
	}
	h.ids = mapped.Make[uint32](mapped.NewSketch(), n)
	if layers > 1 {
		h.edges = e.sketchGhostEdges(hops, a.For(GhostEdges))
	}
	return h, hops
}

// sketchGhostEdges returns the shard of the edges into ghosts of all hops but the last. It allocates
// the arrays that localHalo.shard allocates.
func (e *Engine) sketchGhostEdges(hops []shard.Hop, a *mapped.Arena) *shard.Shard {
	sh := e.Shard
	c := shard.Counts{Ghosts: int64(sh.NumOwn()), Hops: slices.Clone(hops)}
	last := &c.Hops[len(hops)-1]
	last.Edges, last.Cut = 0, 0
	for _, hop := range c.Hops {
		c.Vertices, c.Edges = c.Vertices+hop.Ghosts, c.Edges+hop.Edges
		c.Cut += hop.Cut
	}
	head := shard.Shard{Parts: 1, Vertices: sh.Vertices, Directed: true, Weighted: sh.Weighted && e.Network.Weighs(),
		EdgeDim: e.Network.Design.EdgeDim}
	s := shard.Sketch(head, c, false, mapped.NewSketch())
	s.In = graph.CSR{Offsets: mapped.Make[int64](a, len(s.In.Offsets)), Cols: mapped.Make[uint32](a, len(s.In.Cols))}
	s.InOwnEnd = mapped.Make[int64](a, len(s.InOwnEnd))
	for _, list := range []*[]uint32{&s.InDegree, &s.OutDegree} {
		*list = mapped.Make[uint32](a, len(*list))
	}
	s.EdgeFeatures = mapped.Make[float32](a, len(s.EdgeFeatures))
	for _, list := range []*[]float32{&s.InStrength, &s.OutStrength, &s.Weights} {
		if s.Weighted {
			*list = mapped.Make[float32](a, len(*list))
		}
	}
	return s
}

// sketchGhostFeatures allocates the memory of fetchGhostFeatures.
func (e *Engine) sketchGhostFeatures(net *model.Network, hops []shard.Hop, a, scratch *mapped.Arena) {
	e.ghostFeatures = graph.Features{Rows: len(e.halo.ids), Dim: e.Shard.FeatureDim}
	if !e.computesGhosts() || !net.ReadsFeatures() {
		return
	}
	a = a.For(GhostFeatures)
	var sent, come, sentNonZeros int
	for _, hop := range hops {
		sent, come, sentNonZeros = sent+int(hop.SendRows), come+int(hop.FeatureNNZ), sentNonZeros+int(hop.SendNNZ)
	}
	switch own := e.Shard.Features; {
	case own.Half != nil:
		e.ghostFeatures.Half = mapped.Make[graph.BF16](a, e.ghostFeatures.Rows*e.ghostFeatures.Dim)
		mapped.Make[graph.BF16](scratch, sent*e.ghostFeatures.Dim)
		return
	case own.Sparse == nil:
		e.ghostFeatures.Dense = mapped.Make[float32](a, e.ghostFeatures.Rows*e.ghostFeatures.Dim)
		mapped.Make[float32](scratch, sent*e.ghostFeatures.Dim)
		return
	}
	mapped.Make[uint32](scratch, sent+2*sentNonZeros)
	e.ghostFeatures.Sparse = &graph.SparseRows{
		Offsets: mapped.Make[int64](a, e.ghostFeatures.Rows+1), Cols: mapped.Make[uint32](a, come), Vals: mapped.Make[float32](a, come),
	}
}
