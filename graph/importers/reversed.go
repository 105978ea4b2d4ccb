package importers

import (
	"slices"
	"strings"

	"siafu/graph"
)

// withReverse adds the reverse of each relation between two kinds to of, and with all also the reverse of relations
// within a kind, and returns the edges of all relations. A relation whose reverse rev_NAME exists gets no other one.
func withReverse(of *graph.Relations, edges graph.EachRelation, all bool) graph.EachRelation {
	find := func(name string, x graph.Relation) int {
		return slices.IndexFunc(of.Relations, func(y graph.Relation) bool { return y.Name == name && y.From == x.To && y.To == x.From })
	}
	for i := range of.Relations {
		x := of.Relations[i]
		base, isReverse := strings.CutPrefix(x.Name, "rev_")
		j := find("rev_"+x.Name, x)
		switch {
		case isReverse && find(base, x) >= 0:
		case j > i:
			of.Relations[i].Inverse = j
			of.Relations[j].Inverse, of.Relations[j].Reverse = i, true
		case j < 0 && (all || x.From != x.To):
			of.AddReverse(i)
		}
	}
	return of.WithReverse(edges)
}
