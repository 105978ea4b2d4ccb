package model

import (
	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/internal/size"
	"siafu/kernels"
)

// Footprint is the memory of a network on one rank, in bytes, without cached ÂX, and the
// gathers of its layers.
type Footprint struct {
	PerRow     int64 // own vertex
	PerNonZero int64 // of its features, if sparse
	Fixed      int64
	Gathers    []Gathering // one per layer
}

// probeRows is the number of rows of a network made for measurement: every matrix is then a
// multiple of an arena's rounding.
const probeRows = 16

// countable bounds the weights of a network that can be sketched without overflow of sizes.
const countable = size.Most >> 11

// Footprint sketches small networks of this spec, whose orders must have been chosen: every
// matrix that a network makes has a row a vertex, or is as long as non-zeros, or does not
// depend on the vertices. A network beyond the address space gets size.Most. Memory and time
// of the call do not grow with the network's.
//
// Design note: formulae for each kind of network would have to be maintained with it, and a
// user's own network would have none.
func (s Spec) Footprint(sparse bool, m Memory) Footprint {
	f := Footprint{PerRow: size.Most, Fixed: size.Most, Gathers: make([]Gathering, s.Layers())}
	if s.NumWeights() >= countable {
		return f
	}
	if sketched, err := s.sketch(sparse, m); err == nil {
		return sketched
	}
	return f
}

// sketch returns an error if there are not enough addresses.
func (s Spec) sketch(sparse bool, m Memory) (f Footprint, err error) {
	defer mapped.Catch(&err)
	team := kernels.NewTeam(1)
	defer team.Close()
	n, nonZeros := New(s, sparse), 0
	if sparse {
		nonZeros = probeRows
	}
	small := n.measure(m, team, probeRows, nonZeros)
	f.PerRow = (n.measure(m, team, 2*probeRows, nonZeros) - small) / probeRows
	if sparse {
		f.PerNonZero = (n.measure(m, team, probeRows, 2*nonZeros) - small) / probeRows
	}
	f.Fixed = small - probeRows*f.PerRow - int64(nonZeros)*f.PerNonZero
	for l := range n.Layers {
		f.Gathers = append(f.Gathers, n.Gathering(l))
	}
	return f, nil
}

// measure returns the memory of a network with the given rows, which is made but not run.
func (n *Network) measure(m Memory, team *kernels.Team, rows, nonZeros int) int64 {
	work := mapped.NewSketch()
	NewStore(n, n.Spec.zeroVertices(team, rows, nonZeros, mapped.NewSketch()), m, team, work).Frame(0, rows, team, kernels.Mat{})
	return work.Used()
}

// zeroVertices returns rows of features, sparse if nonZeros > 0.
func (s Spec) zeroVertices(ops kernels.Ops, rows, nonZeros int, a *mapped.Arena) Vertices {
	ids := mapped.Make[uint32](a, rows)
	x := graph.Features{Rows: rows, Dim: s.Dims[0]}
	if nonZeros > 0 {
		x.Sparse = column(rows, nonZeros)
	} else {
		x.Dense = mapped.Make[float32](a, rows*s.Dims[0])
	}
	return Place(ops, a, x, ids, ids)
}

// column returns rows with non-zeros only in the first column, spread over the rows.
func column(rows, nonZeros int) *graph.SparseRows {
	x := &graph.SparseRows{Offsets: make([]int64, rows+1), Cols: make([]uint32, nonZeros), Vals: make([]float32, nonZeros)}
	for v := range x.Offsets {
		x.Offsets[v] = int64(v * nonZeros / rows)
	}
	return x
}
