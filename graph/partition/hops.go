package partition

import (
	"math/bits"
	"runtime"
	"sync"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/internal/workers"
)

// hopVisits is the largest number of parts times edges for which hops are counted. One thread
// visits an edge in a few nanoseconds.
const hopVisits = 4_000_000_000

// hopThreads is the largest number of threads that count hops. Each uses five bits per vertex.
const hopThreads = 8

// countHops sets the hops of every rank. It leaves them empty for one part, and if they would take
// too long. vertices[start[p]:start[p+1]] are the vertices of rank p. The number of edges of r must be
// set.
func (r *Report) countHops(ds *graph.Dataset, owner, vertices []uint32, start []int64) {
	parts := len(r.Ranks)
	if parts < 2 || float64(parts)*float64(r.Edges) > hopVisits {
		return
	}
	for p := range r.Ranks {
		r.Ranks[p].Hops = make([]shard.Hop, shard.CountedHops)
	}
	var mu sync.Mutex
	threads := min(runtime.GOMAXPROCS(0), parts, hopThreads)
	counters := make([]*hopCounter, threads)
	workers.Blocks(threads, parts, 1, func(worker, p, _ int) {
		c := counters[worker]
		if c == nil {
			c = newHopCounter(ds, owner, parts)
			counters[worker] = c
		}
		c.count(vertices[start[p]:start[p+1]], &r.Ranks[p])
		mu.Lock()
		defer mu.Unlock()
		c.addSends(r.Ranks)
	})
	for _, c := range counters {
		if c != nil {
			c.arena.Free()
		}
	}
}

// hopCounter counts the hops of one rank after another: a breadth-first search from the rank's
// vertices. A hop is found along the edges into the hop before, or along the edges out of the vertices
// that are not known yet, if they are fewer (Beamer et al., SC'12).
type hopCounter struct {
	ds    *graph.Dataset
	owner []uint32
	own   []uint64   // bit set of the rank's vertices
	known []uint64   // bit set of own vertices and ghosts found so far
	hops  [][]uint64 // bit sets of ghosts, by hop
	// sends and nonZeros are by hop and rank: its rows that are ghosts of the counted rank, and
	// their non-zero features.
	sends, nonZeros [][]int64
	arena           *mapped.Arena
}

func newHopCounter(ds *graph.Dataset, owner []uint32, parts int) *hopCounter {
	c := &hopCounter{ds: ds, owner: owner, arena: mapped.NewArena()}
	set := func() []uint64 { return mapped.Make[uint64](c.arena, (len(owner)+63)/64) }
	c.own, c.known = set(), set()
	for range shard.CountedHops {
		c.hops = append(c.hops, set())
		c.sends, c.nonZeros = append(c.sends, make([]int64, parts)), append(c.nonZeros, make([]int64, parts))
	}
	return c
}

// count sets all counts of a rank's hops but SendRows and SendNNZ. own has the vertices of the rank.
func (c *hopCounter) count(own []uint32, r *RankReport) {
	clear(c.own)
	rest := int64(len(c.ds.Out.Cols)) // edges out of vertices that are not known yet
	for _, v := range own {
		c.own[v/64] |= 1 << (v % 64)
		rest -= int64(len(c.ds.Out.Row(int(v))))
	}
	copy(c.known, c.own)
	before, into := c.own, r.Edges
	for k := range r.Hops {
		clear(c.hops[k])
		clear(c.sends[k])
		clear(c.nonZeros[k])
		c.find(before, c.hops[k], into, rest)
		h := &r.Hops[k]
		eachBit(c.hops[k], func(v int) {
			c.ghost(h, v, c.sends[k], c.nonZeros[k])
			rest -= int64(len(c.ds.Out.Row(v)))
		})
		before, into = c.hops[k], h.Edges
	}
	r.Hops[0].Quarters = c.quarters(c.hops[0])
	if c.ds.Meta.Directed {
		c.countCut(own, r.Hops)
	} else { // the destinations of edges from own vertices are also sources of edges into them
		r.Hops[0].Cut = r.Cut
	}
}

// quarters returns the number of edges into a quarter, a half and three quarters of a set, those
// vertices with the fewest edges.
func (c *hopCounter) quarters(set []uint64) []int64 {
	var vertices []int64 // by degree
	total := int64(0)
	eachBit(set, func(v int) {
		d := len(c.ds.In.Row(v))
		if d >= len(vertices) {
			vertices = append(vertices, make([]int64, d+1-len(vertices))...)
		}
		vertices[d]++
		total++
	})
	sums, before := make([]int64, 3), int64(0) // before: vertices of lower degree
	for d, n := range vertices {
		for k := range sums {
			first := (int64(k+1)*total + 3) / 4 // rounded up
			sums[k] += int64(d) * max(min(n, first-before), 0)
		}
		before += n
	}
	return sums
}

// find adds the unknown sources of edges into a hop to the next one. into is the number of edges into
// the hop, rest the number of edges out of unknown vertices.
func (c *hopCounter) find(hop, next []uint64, into, rest int64) {
	if into <= rest {
		eachBit(hop, func(v int) {
			for _, u := range c.ds.In.Row(v) {
				if bit := uint64(1) << (u % 64); c.known[u/64]&bit == 0 {
					c.known[u/64] |= bit
					next[u/64] |= bit
				}
			}
		})
		return
	}
	for i, word := range c.known {
		for word = ^word; word != 0; word &= word - 1 {
			v := i*64 + bits.TrailingZeros64(word)
			if v < len(c.owner) && c.leadsTo(v, hop) {
				next[i] |= word & -word
			}
		}
		c.known[i] |= next[i]
	}
}

// leadsTo reports whether v has an edge into a set.
func (c *hopCounter) leadsTo(v int, set []uint64) bool {
	for _, u := range c.ds.Out.Row(v) {
		if set[u/64]>>(u%64)&1 != 0 {
			return true
		}
	}
	return false
}

// ghost counts v, which its owner sends.
func (c *hopCounter) ghost(h *shard.Hop, v int, sends, nonZeros []int64) {
	q := c.owner[v]
	h.Ghosts++
	h.Edges += int64(len(c.ds.In.Row(v)))
	sends[q]++
	if f := c.ds.Features.Sparse; f != nil {
		n := f.Offsets[v+1] - f.Offsets[v]
		h.FeatureNNZ += n
		nonZeros[q] += n
	}
}

// countCut counts the edges from own vertices into each hop.
func (c *hopCounter) countCut(own []uint32, hops []shard.Hop) {
	var cut [shard.CountedHops]int64
	for _, v := range own {
		for _, u := range c.ds.Out.Row(int(v)) {
			for k := range cut {
				cut[k] += int64(c.hops[k][u/64] >> (u % 64) & 1)
			}
		}
	}
	for k := range hops {
		hops[k].Cut = cut[k]
	}
}

// addSends adds the rows that the counted rank receives to the counts of the ranks that send them.
func (c *hopCounter) addSends(ranks []RankReport) {
	for k := range c.sends {
		for q := range ranks {
			ranks[q].Hops[k].SendRows += c.sends[k][q]
			ranks[q].Hops[k].SendNNZ += c.nonZeros[k][q]
		}
	}
}

// eachBit calls visit for the elements of a bit set, in ascending order.
func eachBit(set []uint64, visit func(v int)) {
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			visit(i*64 + bits.TrailingZeros64(word))
		}
	}
}
