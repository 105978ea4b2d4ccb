package importers

import (
	"slices"
	"strings"

	"siafu/graph"
)

// addReverse adds the reverse of relations, as the flag or the schema requests. A relation whose reverse rev_NAME exists
// gets no other one.
//
// Edges of a relation are also edges of its existing reverse, except in tables: every table is one relation.
func (x *relational) addReverse(o Options) {
	of := &x.of
	find := func(name string, r graph.Relation) int {
		return slices.IndexFunc(of.Relations, func(y graph.Relation) bool { return y.Name == name && y.From == r.To && y.To == r.From })
	}
	for i := range of.Relations {
		r := of.Relations[i]
		base, isReverse := strings.CutPrefix(r.Name, "rev_")
		if isReverse && find(base, r) >= 0 {
			continue
		}
		adds := o.ReverseRelations == "on" || o.ReverseRelations != "off" && (x.all || r.From != r.To)
		if x.schema != nil {
			adds = x.schema.Relations[i].Inverse >= 0
		}
		j, oneWay := find("rev_"+r.Name, r), ""
		switch {
		case j > i && !x.fromTables && o.ReverseRelations != "off":
			of.Relations[i].Inverse = j
			of.Relations[j].Inverse, of.Relations[j].Reverse = i, true
		case j < 0 && adds:
			j = of.AddReverse(i)
		case j < 0:
			oneWay = ": information flows in one direction only; add a reverse with --reverse-relations on"
		}
		o.Log("relation=%s reverse=%t%s", of.Label(i), j >= 0, oneWay)
	}
}
