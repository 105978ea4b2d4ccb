package sample

// Vertex is where the features and the edges of a vertex are: a rank, and the row there.
type Vertex struct{ Rank, Row uint32 }

// Field is the vertices that a step goes through, and the edges that it gathers along:
// layer l, counted from the input on, reads the first Ends[l] rows, and gathers for the
// first Ends[l+1], which are not more. The loss is of the first Ends[len(Ends)-1].
//
// Arrays are used again by the next field of the same source.
type Field struct {
	Rows   []Vertex
	Ends   []int   // [layers+1]
	Layers []Edges // [layers]

	// Of the rows: dataset ids, the degrees that coefficients follow from, and, where weights of
	// edges are asked for, their sums into and out of each.
	IDs, InDegree, OutDegree []uint32
	InStrength, OutStrength  []float32
}

// Edges are the edges of a layer. Row i gathers from the rows
// Sources[Offsets[i]:Offsets[i+1]], each of which represents Factor[i] neighbours.
type Edges struct {
	Offsets []int64
	Sources []uint32
	Factor  []float32 // nil: all are there
	Weights []float32 // [sources], 1 of an edge that is the vertex itself; none where nobody asks for them
	// Features are the edge features [sources x EdgeDim], empty if the edges have none or
	// the network uses none.
	Features []float32
}

// clear leaves no edges.
func (e *Edges) clear() {
	e.Offsets, e.Sources, e.Factor = append(e.Offsets[:0], 0), e.Sources[:0], e.Factor[:0]
	e.Weights, e.Features = e.Weights[:0], e.Features[:0]
}

// end ends the edges into a row, which have so many neighbours to stand for.
func (e *Edges) end(neighbours int) {
	drawn := int64(len(e.Sources)) - e.Offsets[len(e.Offsets)-1]
	e.Offsets = append(e.Offsets, int64(len(e.Sources)))
	e.Factor = append(e.Factor, float32(neighbours)/float32(max(drawn, 1)))
}
