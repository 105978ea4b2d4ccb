package shard

import (
	"math"
	"slices"
)

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
	// Quarters has the number of edges into a quarter, a half and three quarters of the shard's
	// ghosts, those with the fewest edges. Empty for later hops.
	Quarters []int64 `json:"quarters,omitempty"`
}

// Halo returns the first n hops of a rank's ghosts in a graph with the given number of vertices.
// exact is false if some of them are estimated, because they have not been counted: then a ghost has
// as many neighbours and non-zeros as an own vertex, and neighbours in the next hop are distinct.
//
// With a share above 0, the first hop is that share of the shard's ghosts, those with the fewest
// edges. The others belong to the second hop. Then the second hop and later ones are upper bounds.
func (c Counts) Halo(n int, share float64, vertices int64) (hops []Hop, exact bool) {
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
	if share > 0 {
		first, rest := hops[0].split(share)
		if hops[0] = first; n > 1 {
			hops[1].add(rest)
		}
	}
	return hops, exact
}

// split divides a hop into the share with the fewest edges, and the rest.
func (h Hop) split(share float64) (first, rest Hop) {
	part := func(n int64) int64 { return int64(math.Round(share * float64(n))) }
	first = Hop{Ghosts: part(h.Ghosts), Cut: part(h.Cut), SendRows: part(h.SendRows), FeatureNNZ: part(h.FeatureNNZ),
		SendNNZ: part(h.SendNNZ), Edges: part(h.Edges)}
	if len(h.Quarters) == 3 {
		at := slices.Concat([]int64{0}, h.Quarters, []int64{h.Edges})
		k := min(int(4*share), 3)
		first.Edges = at[k] + int64((4*share-float64(k))*float64(at[k+1]-at[k]))
		first.Cut = min(first.Cut, first.Edges)
	}
	rest = h
	rest.add(Hop{-first.Ghosts, -first.Edges, -first.Cut, -first.SendRows, -first.FeatureNNZ, -first.SendNNZ, nil})
	return first, rest
}

func (h *Hop) add(o Hop) {
	h.Ghosts, h.Edges, h.Cut = h.Ghosts+o.Ghosts, h.Edges+o.Edges, h.Cut+o.Cut
	h.SendRows, h.FeatureNNZ, h.SendNNZ = h.SendRows+o.SendRows, h.FeatureNNZ+o.FeatureNNZ, h.SendNNZ+o.SendNNZ
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
