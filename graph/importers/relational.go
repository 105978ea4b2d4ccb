package importers

import (
	"math"
	"slices"
	"strings"

	"siafu/graph"
	"siafu/internal/host"
	"siafu/internal/size"
)

// relational collects the parts of a relational graph.
type relational struct {
	of    graph.Relations
	kinds []*graph.Content // vertices, features (Dim 0: none), labels (nil: none), split and ids of each kind
	edges relationEdges
	all   bool // relations within a kind get a reverse, too
}

// relationEdges has the edges of each relation, whose ends are numbers within the kinds.
type relationEdges struct {
	lists []graph.EdgeSource
	first [][2]uint32 // first vertices of the kinds of sources and destinations
}

// each is graph.RelatedSource.EachRelation.
func (e *relationEdges) each(yield func(src, dst uint32, relation uint16) error) error {
	for r, list := range e.lists {
		err := list.Each(func(s, d uint32) error { return yield(s+e.first[r][0], d+e.first[r][1], uint16(r)) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *relational) addKind(at input, name string, c *graph.Content) {
	checkKindName(at, name)
	at.require(!slices.ContainsFunc(x.of.Kinds, func(k graph.VertexKind) bool { return k.Name == name }), "rename one of them",
		"the kind %q occurs twice", name)
	x.of.Kinds = append(x.of.Kinds, graph.VertexKind{Name: name, Vertices: c.Vertices})
	x.kinds = append(x.kinds, c)
}

// addRelation adds a relation between the kinds with the given names.
func (x *relational) addRelation(at input, from, name, to string, edges graph.EdgeSource) {
	r := graph.Relation{Name: name, From: x.kind(at, from), To: x.kind(at, to), Inverse: -1}
	at.require(len(x.of.Relations) < graph.MaxRelations/2, "leave some out", "there are more than %d relations", graph.MaxRelations/2)
	x.of.Relations, x.edges.lists = append(x.of.Relations, r), append(x.edges.lists, edges)
}

// kind returns the index of a kind.
func (x *relational) kind(at input, name string) int {
	i := slices.IndexFunc(x.of.Kinds, func(k graph.VertexKind) bool { return k.Name == name })
	at.require(i >= 0, "", "a relation has the kind %.60q, which is not a kind of vertices", name)
	return i
}

// refuseRelational ends the import of a relational graph with flags for other graphs.
func refuseRelational(at input, o Options) {
	for flag, set := range map[string]bool{"--symmetrise": o.Symmetrise, "--normalize-features": o.Normalize,
		"--edge-features": len(o.EdgeFeatures) > 0} {
		if set {
			at.refuse("leave it out: relations between two kinds are stored in both directions, and their edges have no features",
				"%s, but the graph is relational", flag)
		}
	}
}

// memberBytes is the memory for a vertex during an import: label, split and id.
const memberBytes = 4 + 1 + 8

// content returns the dataset.
func (x *relational) content(k *resources, o Options) *graph.Content {
	n := x.of.First(len(x.of.Kinds))
	checkVertices(k.input, n)
	k.require(len(x.of.Kinds) > 0 && len(x.of.Relations) > 0, "import a graph with edges", "it has %d kinds of vertices and %d relations",
		len(x.of.Kinds), len(x.of.Relations))
	check(host.RequireMemory(k.op, k.path, size.Product(n, memberBytes), host.LargerMachine))
	for _, r := range x.of.Relations {
		x.edges.first = append(x.edges.first, [2]uint32{uint32(x.of.First(r.From)), uint32(x.of.First(r.To))})
	}
	c := &graph.Content{Vertices: n, Relations: &x.of, Labels: unlabelled(n), Split: make([]uint8, n), IDs: x.ids()}
	var features []graph.Features
	columns, target := 0, -1
	for i, kind := range x.kinds {
		features = append(features, kind.Features)
		columns += max(kind.Features.Dim, 1)
		if !slices.ContainsFunc(kind.Labels, func(l int32) bool { return l != graph.Unlabelled }) {
			continue
		}
		if target >= 0 {
			k.require(false, "delete the labels of all kinds but one", "vertices of kinds %q and %q have labels", x.of.Kinds[target].Name,
				x.of.Kinds[i].Name)
		}
		target = i
		x.setLabels(c, kind, x.of.First(i))
	}
	k.require(columns < math.MaxInt32, "reduce the features", "the kinds have %d columns of features", columns)
	c.Features = x.of.JoinFeatures(features, graph.MaxIDFeatures)
	c.Edges = graph.EachRelation(x.edges.each)
	if o.ReverseRelations != "off" {
		c.Edges = withReverse(&x.of, x.edges.each, x.all || o.ReverseRelations == "on")
	}
	for i, kind := range x.of.Kinds {
		labels := ""
		if i == target {
			labels = " labels=here"
		}
		o.Log("kind=%s vertices=%d features: %s%s", kind.Name, kind.Vertices, kind.FeatureText(features[i].Dim), labels)
	}
	for i, r := range x.of.Relations {
		if !r.Reverse {
			o.Log("relation=%s reverse=%t", x.of.Label(i), r.Inverse >= 0)
		}
	}
	return c
}

// setLabels sets the labels and the split of a kind, whose first vertex is first.
func (x *relational) setLabels(c, kind *graph.Content, first int64) {
	c.Task, c.Classes, c.ClassNames = kind.Task, kind.Classes, kind.ClassNames
	copy(c.Labels[first:], kind.Labels)
	copy(c.Split[first:], kind.Split)
	if kind.Targets != nil {
		c.Targets = slices.Repeat([]float32{float32(math.NaN())}, int(c.Vertices)*kind.Classes)
		copy(c.Targets[first*int64(kind.Classes):], kind.Targets)
	}
}

// ids joins the ids of kinds, which are numbers from 0 where there are none.
func (x *relational) ids() *graph.IDs {
	if !slices.ContainsFunc(x.kinds, func(c *graph.Content) bool { return c.IDs != nil }) {
		return x.of.LocalIDs()
	}
	all := &graph.IDs{Offsets: []int64{0}}
	for _, c := range x.kinds {
		for v := range int(c.Vertices) {
			all.Text = append(all.Text, c.IDs.At(v)...)
			all.Offsets = append(all.Offsets, int64(len(all.Text)))
		}
	}
	return all
}

// checkKindName refuses a name that cannot be part of KIND:ID or of a file's name.
func checkKindName(at input, name string) {
	at.require(name != "" && name != ".." && !strings.ContainsAny(name, "/\\:\r\n\x00"), "rename it",
		"the kind or relation %.60q has an invalid name", name)
}
