package pairs

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/size"
)

// drawer samples edges and pairs of a dataset's graph.
type drawer struct {
	ds    *graph.Dataset
	rng   *rand.Rand
	taken []uint64        // held-out pairs, ascending
	drawn map[uint64]bool // negative pairs, and held-out pairs from files
}

// linked reports whether two vertices have an edge in either direction.
func (d *drawer) linked(u, v uint32) bool {
	has := func(c graph.CSR) bool {
		_, ok := slices.BinarySearch(c.Row(int(v)), u)
		return ok
	}
	return has(d.ds.In) || d.ds.Meta.Directed && has(d.ds.Out)
}

// eachPair calls visit once for each pair of vertices with an edge, in the direction of an edge.
func (d *drawer) eachPair(visit func(src, dst uint32)) {
	for v := range uint32(d.ds.In.Rows()) {
		for _, u := range d.ds.In.Row(int(v)) {
			back := false
			if d.ds.Meta.Directed && u > v {
				_, back = slices.BinarySearch(d.ds.Out.Row(int(v)), u) // visited as an edge of u
			}
			if u < v || d.ds.Meta.Directed && !back {
				visit(u, v)
			}
		}
	}
}

func (d *drawer) pairs() (n int64) {
	d.eachPair(func(_, _ uint32) { n++ })
	return n
}

// draw holds out the fractions val and test of the pairs with an edge.
func (d *drawer) draw(h *graph.HeldOut, o HoldOutOptions, val, test float64) error {
	pairs := d.pairs()
	sizes := [2]int64{int64(val * float64(pairs)), int64(test * float64(pairs))}
	if min(sizes[0], sizes[1]) == 0 {
		return fault.New(fault.Data, opHoldOut, d.ds.Dir, "of %d pairs with an edge %s holds out %d and %d",
			pairs, o.Split, sizes[0], sizes[1]).
			Then("set larger percentages")
	}
	if err := require(d.ds.Dir, heldBytes*(sizes[0]+sizes[1]), "set smaller percentages in --split"); err != nil {
		return err
	}
	d.hold(h, pairs, sizes)
	return nil
}

// Memory of a held-out pair and its key; and of a negative pair, which is also in a map.
const (
	heldBytes     = 16
	negativeBytes = 48
)

func require(dir string, bytes int64, remedy string) error {
	return host.RequireMemory(opHoldOut, dir, bytes, remedy)
}

// requireNegatives returns a fault if the memory is too small for the negative pairs and the
// candidates of the held-out edges.
func (d *drawer) requireNegatives(h *graph.HeldOut, count int) error {
	for _, s := range []*graph.Held{&h.Val, &h.Test} {
		n := int64(s.Edges.Len())
		bytes := size.Product(cmp.Or(int64(count), n), negativeBytes)
		if s.Each == nil {
			bytes = size.Sum(bytes, size.Product(n, int64(h.Ranked), 4))
		}
		if err := require(d.ds.Dir, bytes, "set a smaller --ranked, smaller percentages in --split or a smaller --negatives"); err != nil {
			return err
		}
	}
	return nil
}

// hold samples sizes[0] pairs for validation and sizes[1] for the test; left is the number of
// pairs with an edge. All sets of these sizes are equally likely. In an undirected graph the
// source of a pair is random.
//
// Variant: algorithm S of Knuth, The Art of Computer Programming, volume 2, section 3.4.2,
// which goes through the pairs once.
func (d *drawer) hold(h *graph.HeldOut, left int64, sizes [2]int64) {
	to := [2]*graph.Pairs{&h.Val.Edges, &h.Test.Edges}
	d.eachPair(func(u, v uint32) {
		x := d.rng.Int64N(left)
		left--
		k := 0
		if x >= sizes[0] {
			k, x = 1, x-sizes[0]
		}
		if x >= sizes[k] {
			return
		}
		sizes[k]--
		d.taken = append(d.taken, pairKey(u, v))
		if !d.ds.Meta.Directed && d.rng.Uint64()&1 == 1 {
			u, v = v, u
		}
		to[k].Src, to[k].Dst = append(to[k].Src, u), append(to[k].Dst, v)
	})
	slices.Sort(d.taken)
}

// negatives samples the negative pairs and candidates of a split that are not given.
func (d *drawer) negatives(h *graph.Held, count, ranked int) error {
	if h.Not.Len() == 0 {
		if err := d.without(h, count); err != nil {
			return err
		}
	}
	if h.Each != nil {
		return nil
	}
	return d.ranked(h, ranked)
}

// without samples count negative pairs; 0 means the number of held-out edges.
func (d *drawer) without(h *graph.Held, count int) error {
	n := d.ds.Meta.Vertices
	if count == 0 {
		count = h.Edges.Len()
	}
	if d.drawn == nil {
		d.drawn = map[uint64]bool{}
	}
	// At most half of the free pairs are used, so that rejection sampling ends soon.
	if free := float64(n)*float64(n-1)/2 - float64(d.ds.Meta.Edges); float64(len(d.drawn)+count) > free/2 {
		return fault.New(fault.Data, opHoldOut, d.ds.Dir, "%d pairs without an edge are needed, but there are about %.0f",
			len(d.drawn)+count, max(free, 0)).
			Then("set a smaller --negatives")
	}
	for h.Not.Len() < count {
		u, v := d.vertex(), d.vertex()
		if u == v || d.drawn[pairKey(u, v)] || d.linked(u, v) {
			continue
		}
		d.drawn[pairKey(u, v)] = true
		h.Not.Src, h.Not.Dst = append(h.Not.Src, u), append(h.Not.Dst, v)
	}
	return nil
}

// ranked samples different candidates per edge for Each, or takes all of them if there are fewer.
func (d *drawer) ranked(h *graph.Held, each int) error {
	if each == 0 {
		return nil
	}
	h.Each = make([]uint32, 0, h.Edges.Len()*each)
	for i, u := range h.Edges.Src {
		if int64(d.near(u)) >= d.ds.Meta.Vertices-1 {
			return fault.New(fault.Data, opHoldOut, d.ds.Dir, "vertex %s has an edge to every other vertex", d.ds.IDs.At(int(u))).
				Then("disable MRR with --ranked 0")
		}
		list := d.candidates(u, each)
		h.Each = append(append(h.Each, list...), slices.Repeat(h.Edges.Dst[i:i+1], each-len(list))...)
	}
	return nil
}

// candidates returns at most count different vertices without an edge to or from u, in random order.
//
// Variant: rejection sampling if most samples are new, else a shuffled list of all.
func (d *drawer) candidates(u uint32, count int) (list []uint32) {
	free := d.ds.Meta.Vertices - 1 - int64(d.near(u))
	if free > 2*int64(count) {
		seen := make(map[uint32]bool, count)
		for len(list) < count {
			if v := d.vertex(); v != u && !seen[v] && !d.linked(u, v) {
				seen[v], list = true, append(list, v)
			}
		}
		return list
	}
	for v := range uint32(d.ds.Meta.Vertices) {
		if v != u && !d.linked(u, v) {
			list = append(list, v)
		}
	}
	d.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(len(list), count)]
}

// near returns the number of vertices with an edge to or from u.
func (d *drawer) near(u uint32) int {
	if !d.ds.Meta.Directed {
		return len(d.ds.In.Row(int(u)))
	}
	list := slices.Concat(d.ds.In.Row(int(u)), d.ds.Out.Row(int(u)))
	slices.Sort(list)
	return len(slices.Compact(list))
}

func (d *drawer) vertex() uint32 { return uint32(d.rng.Int64N(d.ds.Meta.Vertices)) }
