package partition

import (
	"siafu/graph"
	"siafu/internal/mapped"
)

// Count returns the report that Build would return for ds and owner, except the vertex order. It
// does not make shards. It reads all edges once to count shards, and again to
// count their hops (hopCounter). It uses three words per vertex.
//
// owner must have an entry below o.Parts for each vertex.
func Count(ds *graph.Dataset, owner []uint32, o Options) *Report {
	o = o.withDefaults()
	checkOwners(owner, ds.In.Rows(), o.Parts)
	c := counter{ds: ds, owner: owner, ranks: make([]RankReport, o.Parts), arena: mapped.NewArena()}
	defer c.arena.Free()
	for p := range c.ranks {
		c.ranks[p].SendTo = make([]int64, o.Parts)
	}
	c.count()
	r := &Report{Method: o.Method, Parts: o.Parts}
	for _, one := range c.ranks {
		r.append(one)
	}
	r.countHops(ds, owner, c.vertices, c.start)
	r.finish()
	return r
}

// CountWhole returns the report of Count for one part. It reads the offsets of edges, but no edges.
func CountWhole(ds *graph.Dataset, o Options) *Report {
	o = o.withDefaults()
	one := RankReport{Vertices: int64(ds.In.Rows()), Edges: int64(len(ds.In.Cols)), SendTo: make([]int64, 1)}
	if f := ds.Features.Sparse; f != nil {
		one.FeatureNNZ = int64(len(f.Cols))
	}
	for v, split := range ds.Split {
		if split == graph.SplitTrain {
			one.Train++
			one.TrainEdges += ds.In.Offsets[v+1] - ds.In.Offsets[v]
		}
	}
	r := &Report{Method: o.Method, Parts: 1}
	r.append(one)
	r.finish()
	return r
}

// counter counts each rank's vertices, edges and ghosts.
type counter struct {
	ds    *graph.Dataset
	owner []uint32
	ranks []RankReport
	seen  []uint32 // 1 + the last rank that has the vertex as a ghost
	// vertices[start[p]:start[p+1]] are the vertices of rank p.
	vertices []uint32
	start    []int64
	arena    *mapped.Arena
}

func (c *counter) count() {
	c.seen = mapped.Make[uint32](c.arena, len(c.owner))
	c.vertices = mapped.Make[uint32](c.arena, len(c.owner))
	c.start = byOwner(c.owner, nil, len(c.ranks), c.vertices, nil)
	for p := range c.ranks {
		for _, v := range c.vertices[c.start[p]:c.start[p+1]] {
			c.vertex(&c.ranks[p], uint32(p), int(v))
		}
	}
}

// vertex adds vertex v of rank p, and its edges, to the counts.
func (c *counter) vertex(one *RankReport, p uint32, v int) {
	row, cut := c.ds.In.Row(v), one.Cut
	one.Vertices++
	one.Edges += int64(len(row))
	if f := c.ds.Features.Sparse; f != nil {
		one.FeatureNNZ += f.Offsets[v+1] - f.Offsets[v]
	}
	for _, u := range row {
		if q := c.owner[u]; q != p {
			one.Cut++
			c.ghost(one, p, q, u)
		}
	}
	if c.ds.Split[v] == graph.SplitTrain {
		one.Train++
		one.TrainEdges += int64(len(row))
		one.TrainCut += one.Cut - cut
	}
}

// ghost counts u as a ghost of rank p, unless it is already counted. q is the owner of u.
func (c *counter) ghost(one *RankReport, p, q, u uint32) {
	if c.seen[u] == p+1 {
		return
	}
	c.seen[u] = p + 1
	one.Ghosts++
	c.ranks[q].SendRows++
	c.ranks[q].SendTo[p]++
}
