package importers

import (
	"cmp"
	"slices"
	"strings"

	"siafu/graph"
)

// debEdge is a relation between two packages, with the properties of the relation (debProps). In
// an edge with features, the higher bits have the properties of the reverse relation.
type debEdge struct {
	src, dst uint32
	props    uint16
}

// debEdges are relations of packages as a graph.EdgeSource.
type debEdges []debEdge

// Each implements graph.EdgeSource.
func (l debEdges) Each(yield func(src, dst uint32) error) error {
	for _, e := range l {
		if err := yield(e.src, e.dst); err != nil {
			return err
		}
	}
	return nil
}

// edges returns the relations between packages of the archive, package→neighbour, and with
// edge features in both directions. graph.Write handles duplicates and self loops.
func (a *debArchive) edges(o Options) graph.EdgeSource {
	var list debEdges
	virtual, unknown, unknownNames := 0, 0, map[string]bool{}
	for v, p := range a.packages {
		for _, r := range p.relations {
			switch u, known := a.names.find([]byte(r.name)); {
			case known:
				list = append(list, debEdge{uint32(v), u, uint16(r.props)})
			case a.virtual[r.name]:
				virtual++
			default:
				unknown++
				unknownNames[r.name] = true
			}
		}
	}
	o.Log("debian: packages=%d other_versions=%d relations=%d to_virtual=%d to_unknown=%d unknown_names=%d",
		len(a.packages), a.dropped, len(list), virtual, unknown, len(unknownNames))
	if len(o.EdgeFeatures) == 0 {
		return list
	}
	if o.Symmetrise {
		a.refuse("leave --symmetrise out: edges are stored in both directions, each with its own features",
			"--symmetrise with --edge-features")
	}
	return list.featured(o)
}

// featured returns the edges in both directions, each pair of packages once, with features of 0
// and 1. The first half are the relations of the edge's source that name its destination,
// the second half the reverse. A feature is 1 if any of several relations has it.
func (l debEdges) featured(o Options) graph.EdgeSource {
	var both, merged debEdges
	for _, e := range l {
		both = append(both, e, debEdge{e.dst, e.src, e.props << len(debProperties)})
	}
	slices.SortFunc(both, func(x, y debEdge) int { return cmp.Or(cmp.Compare(x.src, y.src), cmp.Compare(x.dst, y.dst)) })
	for i, e := range both {
		if i > 0 && both[i-1].src == e.src && both[i-1].dst == e.dst {
			merged[len(merged)-1].props |= e.props
			continue
		}
		merged = append(merged, e)
	}
	columns := debColumns(o)
	return graph.WithFeatures(merged, len(columns), func(yield func(src, dst uint32, weight float32, features []float32) error) error {
		row := make([]float32, len(columns))
		for _, e := range merged {
			for j, bit := range columns {
				row[j] = float32(e.props >> bit & 1)
			}
			if err := yield(e.src, e.dst, 1, row); err != nil {
				return err
			}
		}
		return nil
	})
}

// debColumns returns the bits of both directions that become columns, in the order of o, and
// logs them.
func debColumns(o Options) (columns []int) {
	var names []string
	for _, asked := range o.EdgeFeatures {
		for bit, name := range debProperties {
			if name == asked || asked == "field" && bit < len(debRelations) {
				columns, names = append(columns, bit), append(names, name)
			}
		}
	}
	for _, bit := range slices.Clone(columns) {
		columns = append(columns, len(debProperties)+bit)
	}
	o.Log("edges: features=%s of the source's relations, and the same ones of the destination's", strings.Join(names, ","))
	return columns
}
