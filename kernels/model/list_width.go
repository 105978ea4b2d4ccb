package model

// ListWidth returns the width of a dense row whose gather takes as long as that of the list of an
// average vertex, if features are gathered as lists (Listed). nonZeros is the number of non-zero
// features of the given number of vertices.
func (s Spec) ListWidth(nonZeros, vertices int64) float64 {
	return s.listWidth(Load{FeatureNNZ: nonZeros, Vertices: vertices})
}
