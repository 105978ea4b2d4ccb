package shard

// CountedHops is the number of hops in Counts.Hops.
const CountedHops = 3

// Hop contains the counts of the ghosts of one hop: of the shard's ghosts, or of the vertices that
// have an edge into the hop before and belong neither to it, nor to an earlier hop, nor to the rank.
type Hop struct {
	Ghosts int64 `json:"ghosts"`
	// Edges is the number of edges into these ghosts. Cut is the number of these edges that come
	// from own vertices.
	Edges int64 `json:"edges"`
	Cut   int64 `json:"cut"`
	// SendRows is the number of own rows that are ghosts of this hop on other ranks, summed over
	// those ranks.
	SendRows int64 `json:"send_rows"`
	// FeatureNNZ is the number of non-zero features of these ghosts, SendNNZ of the rows that
	// SendRows counts; 0 if features are dense.
	FeatureNNZ int64 `json:"feature_nnz,omitempty"`
	SendNNZ    int64 `json:"send_nnz,omitempty"`
}

// Halo returns the first n hops of a rank's ghosts in a graph with the given number of vertices.
// exact is false if some of them are estimated, because they have not been counted: then a ghost has
// as many neighbours and non-zeros as an own vertex, and neighbours in the next hop are distinct.
func (c Counts) Halo(n int, vertices int64) (hops []Hop, exact bool) {
	exact = n <= len(c.Hops)
	hops = append(hops, c.Hops[:min(n, len(c.Hops))]...)
	own := float64(max(c.Vertices, 1))
	degree, each := float64(c.Edges)/own, float64(c.FeatureNNZ)/own
	known := c.Vertices
	for _, h := range hops {
		known += h.Ghosts
	}
	for k := len(hops); k < n; k++ {
		h := Hop{Ghosts: c.Ghosts, SendRows: c.SendRows}
		if k > 0 {
			h.Ghosts = max(min(hops[k-1].Edges-hops[k-1].Cut, vertices-known), 0)
			h.SendRows = h.Ghosts
		}
		known += h.Ghosts
		h.Edges = int64(degree * float64(h.Ghosts))
		h.Cut = int64(float64(h.Edges) * own / float64(max(vertices, 1)))
		h.FeatureNNZ, h.SendNNZ = int64(each*float64(h.Ghosts)), int64(each*float64(h.SendRows))
		hops = append(hops, h)
	}
	return hops, exact
}

// into returns the number of edges into the first n vertices of Hops, from each other and from the
// vertices that Cut counts. It is exact at the end of a hop.
func (c Counts) into(n int) (inner, cut int) {
	for _, h := range c.Hops {
		part := min(float64(n)/float64(max(h.Ghosts, 1)), 1)
		inner, cut = inner+int(part*float64(h.Edges-h.Cut)), cut+int(part*float64(h.Cut))
		n -= min(n, int(h.Ghosts))
	}
	return inner, cut
}
