package sample

// Vertex is the location of a vertex's features and edges: its rank, and its row on that rank.
type Vertex struct{ Rank, Row uint32 }

// Field has the vertices of a step, and the edges that it gathers along. Layers are those that gather,
// from the input on. Layer l reads the first Ends[l] rows, and gathers for the first Ends[l+1] <= Ends[l].
// The loss is over the first Ends[len(Ends)-1].
//
// The next field of the same source reuses the arrays.
type Field struct {
	Rows   []Vertex
	Ends   []int   // [layers+1]
	Layers []Edges // [layers]

	// Of the rows: dataset ids, degrees for coefficients, and, if edge weights are requested,
	// their sums into and out of each.
	IDs, InDegree, OutDegree []uint32
	InStrength, OutStrength  []float32
	// LossWeights are the weights of the rows' losses, nil: 1.
	LossWeights []float32
}

// Edges are the edges of a layer. Row i gathers from the rows
// Sources[Offsets[i]:Offsets[i+1]], each of which represents Factor[i] neighbours.
type Edges struct {
	Offsets []int64
	Sources []uint32
	Factor  []float32 // nil: all neighbours are sampled
	Weights []float32 // [sources], 1 for the vertex itself; empty if not requested
	// Features are the edge features [sources x EdgeDim], empty if the edges have none or
	// the network uses none.
	Features []float32
}

// clear removes all edges.
func (e *Edges) clear() {
	e.Offsets, e.Sources, e.Factor = append(e.Offsets[:0], 0), e.Sources[:0], e.Factor[:0]
	e.Weights, e.Features = e.Weights[:0], e.Features[:0]
}

// end ends the edges into a row. They represent the given number of neighbours.
func (e *Edges) end(neighbours int) {
	drawn := int64(len(e.Sources)) - e.Offsets[len(e.Offsets)-1]
	e.Offsets = append(e.Offsets, int64(len(e.Sources)))
	e.Factor = append(e.Factor, float32(neighbours)/float32(max(drawn, 1)))
}
