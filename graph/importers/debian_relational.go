package importers

import (
	"maps"
	"slices"
	"strings"

	"siafu/graph"
)

// Kinds of vertices of a relational package graph.
const (
	debPackageKind    = "package"
	debVirtualKind    = "virtual" // names that packages only provide
	debSourceKind     = "source"
	debMaintainerKind = "maintainer"
)

// debLinks collects the edges of relations, in the order of their first edge.
type debLinks struct {
	relations [][3]string // kind, name, kind
	edges     map[[3]string]*graph.EdgePairs
}

func (l *debLinks) add(from, name, to string, src, dst uint32) {
	key := [3]string{from, name, to}
	if l.edges[key] == nil {
		l.relations, l.edges[key] = append(l.relations, key), &graph.EdgePairs{}
	}
	*l.edges[key] = append(*l.edges[key], src, dst)
}

// relational returns the archive as a relational graph. A field of a package is a relation to packages, and
// another one to virtual packages. A package has a source package, and a source package maintainers.
func (a *debArchive) relational(k *resources, o Options) *graph.Content {
	refuseRelational(k.input, o)
	packages, virtual, sources, maintainers := newIDIndex(), newIDIndex(), newIDIndex(), newIDIndex()
	for _, p := range a.packages {
		packages.add([]byte(p.name))
	}
	for _, name := range slices.Sorted(maps.Keys(a.virtual)) {
		if _, real := packages.find([]byte(name)); !real {
			virtual.add([]byte(name))
		}
	}
	links, unknown := &debLinks{edges: map[[3]string]*graph.EdgePairs{}}, 0
	for v, p := range a.packages {
		link := func(field, name string) {
			relation := strings.ReplaceAll(field, "-", "_")
			if u, known := packages.find([]byte(name)); known {
				links.add(debPackageKind, relation, debPackageKind, uint32(v), u)
			} else if u, known := virtual.find([]byte(name)); known {
				links.add(debPackageKind, relation, debVirtualKind, uint32(v), u)
			} else {
				unknown++
			}
		}
		for i, field := range debRelations {
			for _, r := range p.relations {
				if r.props&(1<<i) != 0 {
					link(field, r.name)
				}
			}
		}
		for i, field := range debMoreRelations {
			for _, r := range p.more[i] {
				link(field, r.name)
			}
		}
		source, _ := sources.add([]byte(p.source))
		links.add(debPackageKind, "built_from", debSourceKind, uint32(v), source)
		if p.maintainer != "" {
			maintainer, _ := maintainers.add([]byte(p.maintainer))
			links.add(debSourceKind, "maintained_by", debMaintainerKind, source, maintainer)
		}
	}
	o.Log("debian: packages=%d other_versions=%d to_unknown=%d", len(a.packages), a.dropped, unknown)
	target := &graph.Content{Vertices: int64(len(a.packages)), Features: a.features(), IDs: a.ids()}
	target.Labels, target.ClassNames = a.labels()
	target.Classes = len(target.ClassNames)
	target.Split = o.draw(target.Labels, usual)
	x := &relational{all: true}
	x.addKind(k.input, debPackageKind, target)
	for i, index := range []*idIndex{virtual, sources, maintainers} {
		name := []string{debVirtualKind, debSourceKind, debMaintainerKind}[i]
		x.addKind(k.input, name, &graph.Content{Vertices: int64(index.len()), IDs: index.ids()})
	}
	for _, r := range links.relations {
		x.addRelation(k.input, r[0], r[1], r[2], *links.edges[r])
	}
	c := x.content(k, o)
	c.Source = "debian: " + a.path
	return c
}
