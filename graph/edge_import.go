package graph

import (
	"fmt"
	"slices"
	"strings"
)

// EdgeImport records the import options that select the edges, their weights and their features.
type EdgeImport struct {
	Symmetrised    bool     `json:"symmetrised,omitempty"`     // every edge is stored in both directions
	WeightsDropped bool     `json:"weights_dropped,omitempty"` // the import ignored weights
	Ends           []string `json:"ends,omitempty"`            // columns of source and destination, if imported from a table
	Weight         string   `json:"weight,omitempty"`          // column of the weights, if imported from a table; "" for none
	Relation       string   `json:"relation,omitempty"`        // column of the relations, if imported from a table; "" for none
	Features       []string `json:"features,omitempty"`        // of other formats: the value of --edge-features
}

// EdgeUse records which edge data a network uses.
type EdgeUse struct{ Edges, Weights, Features bool }

// otherEdges compares the edges of m with the edges of the training data. It returns the
// difference and its remedy. It returns "" if the data that the network uses is of the same
// kind, or if the model does not record its import.
func (s *Schema) otherEdges(m *Meta, use EdgeUse) (why, remedy string) {
	model, data := s.EdgeImport, m.EdgeImport
	switch {
	case model == nil || !use.Edges:
		return "", ""
	case model.Symmetrised && m.Directed:
		return "its edges are stored in one direction, the model was trained on edges in both directions",
			"import the dataset with --symmetrise"
	case data == nil:
		return "", ""
	case data.Symmetrised && s.Directed:
		return "its edges are stored in both directions, the model was trained on edges in one direction",
			"import the dataset without --symmetrise"
	case !s.sameEnds(m):
		return fmt.Sprintf("its edges go from column %s, the model was trained on edges from column %s",
			strings.Join(data.Ends, " to "), strings.Join(model.Ends, " to ")), likeRemedy
	}
	if use.Weights {
		if why, remedy = s.otherWeights(m); why != "" {
			return why, remedy
		}
	}
	if use.Features && len(model.Features) > 0 && len(data.Features) > 0 && !slices.Equal(model.Features, data.Features) {
		return fmt.Sprintf("its edges have the features %s, the model was trained on %s", strings.Join(data.Features, ","),
				strings.Join(model.Features, ",")),
			"import the dataset with --edge-features " + strings.Join(model.Features, ",")
	}
	return "", ""
}

// sameEnds reports whether the endpoints came from the same columns. The order of the columns
// is irrelevant if all edges are stored in both directions.
func (s *Schema) sameEnds(m *Meta) bool {
	model, data := s.EdgeImport.Ends, slices.Clone(m.EdgeImport.Ends)
	if model == nil || data == nil || slices.Equal(model, data) {
		return true
	}
	slices.Reverse(data)
	return !s.Directed && !m.Directed && slices.Equal(model, data)
}

// otherWeights compares the edge weights, as otherEdges does for the edges.
func (s *Schema) otherWeights(m *Meta) (why, remedy string) {
	model, data := s.EdgeImport, m.EdgeImport
	switch {
	case model.WeightsDropped && m.Weighted:
		return "its edges have weights, the model was trained on edges without their weights", "import the dataset with --drop-weights"
	case data.WeightsDropped && s.Weighted:
		return "its edges have no weights, the model was trained on edges with weights", "import the dataset without --drop-weights"
	case model.Ends == nil || data.Ends == nil || model.WeightsDropped || data.WeightsDropped:
		return "", ""
	case model.Weight != data.Weight && (s.Weighted || m.Weighted):
		return fmt.Sprintf("its edges have %s, the model was trained on edges with %s", data.weights(), model.weights()), likeRemedy
	}
	return "", ""
}

func (e *EdgeImport) weights() string {
	if e.Weight == "" {
		return "no weights"
	}
	return fmt.Sprintf("the weights of column %q", e.Weight)
}
