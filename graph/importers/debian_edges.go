package importers

import (
	"cmp"
	"slices"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
)

// debColumns has the names for --edge-features, and the bits of a debSays that become columns.
var debColumns = []struct {
	name string
	bits debSays
}{
	{"field", debOfVersions - 1},
	{"version", debOfVersions},
	{"alternative", debFurther},
}

// debColumnNames returns the names of debColumns.
func debColumnNames() []string {
	var names []string
	for _, c := range debColumns {
		names = append(names, c.name)
	}
	return names
}

// edges returns the relations between packages of the archive, package→neighbour, and with
// edge features in both directions. graph.Write handles duplicates and self loops.
func (a *debArchive) edges(o Options) (graph.EdgeSource, error) {
	index := make(map[string]uint32, len(a.packages))
	for v, p := range a.packages {
		index[p.name] = uint32(v)
	}
	var pairs graph.EdgePairs
	var says []debSays
	var virtual int
	unknown, unknownNames := 0, map[string]bool{}
	for v, p := range a.packages {
		for _, r := range p.relations {
			u, known := index[r.name]
			switch {
			case known:
				pairs, says = append(pairs, uint32(v), u), append(says, r.says)
			case a.virtual[r.name]:
				virtual++
			default:
				unknown++
				unknownNames[r.name] = true
			}
		}
	}
	o.Log("debian: packages=%d other_versions=%d relations=%d to_virtual=%d to_unknown=%d unknown_names=%d",
		len(a.packages), a.dropped, len(says), virtual, unknown, len(unknownNames))
	if len(o.EdgeFeatures) == 0 {
		return pairs, nil
	}
	if o.Symmetrise {
		return nil, fault.New(fault.Usage, debOp, debPath(o), "--symmetrise with --edge-features").
			Then("leave --symmetrise out: edges are stored in both directions, each with its own features")
	}
	return newDebEdges(o, pairs, says), nil
}

// debEdges has edges in both directions, each pair of packages once, with features of 0 and 1
// (columns). The first half are the relations of the edge's source that name its destination,
// the second half the reverse. A feature is 1 if any of several relations has it.
type debEdges struct {
	graph.EdgePairs
	says    []uint16 // of each edge: debSays of its source, in higher bits of its destination
	columns []int    // bits of says that are columns
}

// newDebEdges returns the edges of relations between packages, with the features that o names.
func newDebEdges(o Options, relations graph.EdgePairs, says []debSays) graph.EdgeSource {
	type edge struct {
		src, dst uint32
		says     uint16
	}
	var list []edge
	for i, s := range says {
		p, q := relations[2*i], relations[2*i+1]
		list = append(list, edge{p, q, uint16(s)}, edge{q, p, uint16(s) << debBits})
	}
	slices.SortFunc(list, func(x, y edge) int { return cmp.Or(cmp.Compare(x.src, y.src), cmp.Compare(x.dst, y.dst)) })
	e := &debEdges{columns: debChosen(o)}
	for i, x := range list {
		if last := len(e.says) - 1; i > 0 && list[i-1].src == x.src && list[i-1].dst == x.dst {
			e.says[last] |= x.says
			continue
		}
		e.EdgePairs, e.says = append(e.EdgePairs, x.src, x.dst), append(e.says, x.says)
	}
	return graph.WithFeatures(e.EdgePairs, len(e.columns), e.eachFeatures)
}

// debChosen returns the bits of both directions that become columns, in the order of o, and
// logs them.
func debChosen(o Options) (columns []int) {
	var names []string
	for _, name := range o.EdgeFeatures {
		i := slices.Index(debColumnNames(), name)
		for bit := range debBits {
			if debColumns[i].bits&(1<<bit) == 0 {
				continue
			}
			if columns = append(columns, bit); bit < len(debRelations) {
				name = debRelations[bit]
			}
			names = append(names, name)
		}
	}
	for _, bit := range slices.Clone(columns) {
		columns = append(columns, debBits+bit)
	}
	o.Log("edges: features=%s of the source's relations, and the same ones of the destination's", strings.Join(names, ","))
	return columns
}

// eachFeatures is graph.FeaturedSource.EachFeatures.
func (e *debEdges) eachFeatures(yield func(src, dst uint32, weight float32, features []float32) error) error {
	row, at := make([]float32, len(e.columns)), -1
	return e.Each(func(src, dst uint32) error {
		at++
		for j, bit := range e.columns {
			row[j] = float32(e.says[at] >> bit & 1)
		}
		return yield(src, dst, 1, row)
	})
}
