package sample

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"siafu/halo/comm"
	"siafu/internal/elementary"
	"siafu/kernels"
)

// Approximate returns the field of all own vertices, which have the loss, and of a sample of the other
// ranks' vertices, with all edges between them (Angerd, Balasubramanian and Annavaram, arXiv 2012.04930:
// subgraph approximation). Degrees and sums count only these edges. Features go to x [at least rows x
// features].
//
// Of another rank's n vertices, ⌊share n⌋ are sampled without replacement, with probabilities
// proportional to out-degrees. Fanouts must be one number that no degree exceeds, and Self false. layers
// is the number of layers that gather. Neighbours makes no other field. Collective.
func (n *Neighbours) Approximate(share float64, layers int, x kernels.Mat) (*Field, error) {
	own := n.o.Shard.NumOwn()
	rows := make([]Vertex, own)
	for v := range rows {
		rows[v] = Vertex{uint32(n.o.Comm.Rank()), uint32(v)}
	}
	lists, err := comm.Swap(n.o.Comm, n.chooseRows(share), func(int) uint64 { return uint64(n.o.Shard.Vertices) })
	if err != nil {
		return nil, err
	}
	for q, list := range lists {
		for _, row := range list {
			rows = append(rows, Vertex{uint32(q), row})
		}
	}
	f, err := n.draw(0, rows)
	if err != nil {
		return nil, err
	}
	f.Rows = f.Rows[:len(rows)]
	if err := n.Fetch(x); err != nil {
		return nil, err
	}
	f.restrict(n.o.EdgeData)
	f.share(own, layers)
	return f, nil
}

// chooseRows samples own rows for each other rank.
//
// Variant: the largest keys log(u)/degree of uniform random numbers u (Efraimidis and Spirakis,
// "Weighted random sampling with a reservoir", IPL 97(5), 2006, algorithm A).
func (n *Neighbours) chooseRows(share float64) [][]uint32 {
	rank, own := n.o.Comm.Rank(), n.o.Shard.NumOwn()
	lists, keys := make([][]uint32, n.o.Comm.Size()), make([]float64, own)
	for q := range lists {
		if q == rank {
			continue
		}
		rng, order := rand.New(rand.NewPCG(n.o.Seed, uint64(q)<<32|uint64(rank))), make([]uint32, own)
		for v := range keys {
			order[v] = uint32(v)
			keys[v] = elementary.Log(1-rng.Float64()) / float64(n.o.Shard.OutDegree[v])
		}
		slices.SortStableFunc(order, func(u, v uint32) int { return cmp.Compare(keys[v], keys[u]) })
		lists[q] = slices.Sorted(slices.Values(order[:int(share*float64(own))]))
	}
	return lists
}

// restrict removes the edges of the first layer from sources that are no rows, and sets the degrees and
// sums of rows to those of the other edges.
func (f *Field) restrict(along EdgeData) {
	e, at, rows := &f.Layers[0], int64(0), uint32(len(f.Rows))
	clear(f.OutDegree)
	clear(f.InStrength)
	clear(f.OutStrength)
	first := int64(0)
	for i := range f.Rows {
		end := e.Offsets[i+1]
		for k := first; k < end; k++ {
			u := e.Sources[k]
			if u >= rows {
				continue
			}
			e.Sources[at] = u
			f.OutDegree[u]++
			if along.Weighted {
				w := e.Weights[k]
				e.Weights[at] = w
				f.InStrength[i], f.OutStrength[u] = f.InStrength[i]+w, f.OutStrength[u]+w
			}
			dim := int64(along.EdgeDim)
			copy(e.Features[at*dim:(at+1)*dim], e.Features[k*dim:(k+1)*dim])
			at++
		}
		first, e.Offsets[i+1] = end, at
		f.InDegree[i] = uint32(at - e.Offsets[i])
	}
	e.Sources, e.Factor = e.Sources[:at], nil
	e.Weights, e.Features = e.Weights[:min(at, int64(len(e.Weights)))], e.Features[:at*int64(along.EdgeDim)]
}

// share makes the given number of layers gather along the edges of the first layer. The last one gathers
// only for the own vertices, the first rows.
func (f *Field) share(own, layers int) {
	e := f.Layers[0]
	f.Layers, f.Ends = slices.Repeat([]Edges{e}, layers), slices.Repeat([]int{len(f.Rows)}, layers+1)
	end := e.Offsets[own]
	f.Layers[layers-1].Offsets, f.Layers[layers-1].Sources = slices.Clone(e.Offsets[:own+1]), e.Sources[:end]
	f.Ends[layers] = own
}
