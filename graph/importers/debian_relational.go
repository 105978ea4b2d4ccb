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

// relational returns the archive as a relational graph. target has the packages without a split. A field of a package
// is a relation to packages, and another one to virtual packages. A package has a source package, and a source package
// maintainers.
func (a *debArchive) relational(k *resources, o Options, target *graph.Content) *graph.Content {
	refuseRelational(k.input, o)
	virtual, sources, maintainers := newIDIndex(), newIDIndex(), newIDIndex()
	for _, name := range slices.Sorted(maps.Keys(a.virtual)) {
		if _, real := a.names.find([]byte(name)); !real {
			virtual.add([]byte(name))
		}
	}
	unknown, relations, edges := 0, [][3]string{}, map[[3]string]graph.EdgePairs{} // relations by their first edge
	add := func(from, name, to string, src, dst uint32) {
		key := [3]string{from, name, to}
		if edges[key] == nil {
			relations = append(relations, key)
		}
		edges[key] = append(edges[key], src, dst)
	}
	for v, p := range a.packages {
		link := func(field, name string) {
			relation := strings.ReplaceAll(field, "-", "_")
			if u, known := a.names.find([]byte(name)); known {
				add(debPackageKind, relation, debPackageKind, uint32(v), u)
			} else if u, known := virtual.find([]byte(name)); known {
				add(debPackageKind, relation, debVirtualKind, uint32(v), u)
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
		add(debPackageKind, "built_from", debSourceKind, uint32(v), source)
		if p.maintainer != "" {
			maintainer, _ := maintainers.add([]byte(p.maintainer))
			add(debSourceKind, "maintained_by", debMaintainerKind, source, maintainer)
		}
	}
	o.Log("debian: packages=%d other_versions=%d to_unknown=%d", len(a.packages), a.dropped, unknown)
	target.Split = o.draw(target.Labels, usual)
	x := &relational{all: true}
	x.addKind(k.input, debPackageKind, target)
	for i, index := range []*idIndex{virtual, sources, maintainers} {
		name := []string{debVirtualKind, debSourceKind, debMaintainerKind}[i]
		x.addKind(k.input, name, &graph.Content{Vertices: int64(index.len()), IDs: index.ids()})
	}
	for _, r := range relations {
		x.addRelation(k.input, r[0], r[1], r[2], edges[r])
	}
	return x.content(k, o)
}
