package model

import (
	"siafu/graph"
	"siafu/graph/mapped"
	"siafu/kernels"
)

// Footprint is the memory that a network takes on one rank, in bytes: what New
// makes and what its layers add while they work, without ÂX where that is kept,
// and the gathers of its layers.
type Footprint struct {
	PerRow     int64 // own vertex
	PerNonZero int64 // of its features, where they are sparse
	Fixed      int64
	Gathers    []Gathering // one a layer
}

// Gathering is what a layer wants of the graph.
type Gathering struct {
	Width int  // of the rows that neighbours emit, 0: no gather
	Back  bool // gradients go back along the edges
	// Of attention: 0 heads is none. Columns is the width of what is gathered.
	Heads, Columns int
}

// probe is how many rows a network has that is made to be measured: as many as
// make every matrix a multiple of an arena's rounding.
const probe = 16

// Footprint measures small networks of this spec, whose orders must have been
// chosen: every matrix that a network makes has a row a vertex, or is as long
// as non-zeros, or does not depend on the vertices.
//
// Design note: formulae beside each kind of network would have to be kept in
// step with it, and a network of a user's own would have none.
func (s Spec) Footprint(sparse bool) Footprint {
	team := kernels.NewTeam(1)
	defer team.Close()
	nonZeros := 0
	if sparse {
		nonZeros = probe
	}
	small, gathers := s.measure(team, probe, nonZeros)
	tall, _ := s.measure(team, 2*probe, nonZeros)
	full, _ := s.measure(team, probe, 2*nonZeros)
	f := Footprint{PerRow: (tall - small) / probe, PerNonZero: (full - small) / probe, Gathers: gathers}
	f.Fixed = small - probe*f.PerRow - int64(nonZeros)*f.PerNonZero
	return f
}

// measure is the memory of a network of so many rows after an epoch.
func (s Spec) measure(team *kernels.Team, rows, nonZeros int) (int64, []Gathering) {
	work, scratch := mapped.NewArena(), mapped.NewArena()
	defer work.Free()
	defer scratch.Free()
	ids := mapped.Make[uint32](scratch, rows)
	in := Input{Features: graph.Features{Rows: rows, Dim: s.Dims[0]}, IDs: ids, LocalIDs: ids}
	if nonZeros > 0 {
		in.Features.Sparse = column(scratch, rows, nonZeros)
	} else {
		in.Features.Dense = mapped.Make[float32](scratch, rows*s.Dims[0])
	}
	r := NewRehearsal(s, in, team, work, scratch)
	r.Epoch()
	return work.Used(), r.Gathers
}

// gathered is the width of what a layer gathers.
func (g Gathering) gathered() int {
	if g.Heads > 0 {
		return g.Columns
	}
	return g.Width
}

func (n *Network) gatherings() []Gathering {
	list := make([]Gathering, len(n.Layers))
	for l, layer := range n.Layers {
		g := Gathering{Width: layer.GatherWidth(), Back: layer.GathersBack()}
		if at, ok := layer.(Attended); ok {
			a := at.Attention(Pass{})
			g.Heads, g.Columns = a.Heads, a.Columns()
		}
		if l == 0 && n.Kept() {
			g = Gathering{}
		}
		list[l] = g
	}
	return list
}

// column has its non-zeros in the first column, spread over the rows.
func column(a *mapped.Arena, rows, nonZeros int) *graph.SparseRows {
	x := &graph.SparseRows{
		Offsets: mapped.Make[int64](a, rows+1),
		Cols:    mapped.Make[uint32](a, nonZeros), Vals: mapped.Make[float32](a, nonZeros),
	}
	for v := range x.Offsets {
		x.Offsets[v] = int64(v * nonZeros / rows)
	}
	return x
}
