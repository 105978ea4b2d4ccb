package importers

import "siafu/graph"

// withReverse adds the reverse of each relation between two kinds to of, and returns edges with it.
func withReverse(of *graph.Relations, edges graph.RelatedSource) graph.RelatedSource {
	for i, x := range of.Relations {
		if x.From != x.To && x.Inverse < 0 {
			of.AddReverse(i)
		}
	}
	return of.WithReverse(edges)
}
