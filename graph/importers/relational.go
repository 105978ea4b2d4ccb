package importers

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"siafu/graph"
	"siafu/internal/host"
	"siafu/internal/size"
)

// relational collects the parts of a relational graph.
type relational struct {
	of    graph.Relations
	kinds []*graph.Content   // vertices, features (Dim 0: none), labels (nil: none), split and ids of each kind
	lists []graph.EdgeSource // edges of the relations without added reverses: numbers within kinds
	all   bool               // relations within a kind get a reverse, too
	// fromTables is set for tables: their kinds have all features but the constant column, and they call addReverse.
	fromTables bool
	// schema determines which relations get a reverse; nil: the flag does.
	schema *graph.Relations
}

// each is graph.RelatedSource.EachRelation, without added reverses.
func (x *relational) each(yield func(src, dst uint32, relation uint16) error) error {
	for i, list := range x.lists {
		from, to := uint32(x.of.First(x.of.Relations[i].From)), uint32(x.of.First(x.of.Relations[i].To))
		if err := list.Each(func(s, d uint32) error { return yield(s+from, d+to, uint16(i)) }); err != nil {
			return err
		}
	}
	return nil
}

func (x *relational) addKind(at input, name string, c *graph.Content) {
	checkKindName(at, name)
	at.require(x.of.Kind(name) < 0, "rename one of them", "the kind %q occurs twice", name)
	x.of.Kinds = append(x.of.Kinds, graph.VertexKind{Name: name, Vertices: c.Vertices})
	x.kinds = append(x.kinds, c)
}

// addRelation adds a relation between the kinds with the given names.
func (x *relational) addRelation(at input, from, name, to string, edges graph.EdgeSource) {
	at.require(len(x.of.Relations) < mostRelations, "leave some out", "there are more than %d relations", mostRelations)
	x.of.Relations = append(x.of.Relations, graph.Relation{Name: name, From: x.kind(at, from), To: x.kind(at, to), Inverse: -1})
	x.lists = append(x.lists, edges)
}

// mostRelations leaves room for the reverse relations.
const mostRelations = graph.MaxRelations / 2

// kind returns the index of a kind.
func (x *relational) kind(at input, name string) int {
	i := x.of.Kind(name)
	at.require(i >= 0, "", "a relation has the kind %.60q, which is not a kind of vertices", name)
	return i
}

// refuseRelational ends the import of a relational graph with flags for other graphs.
func refuseRelational(at input, o Options) {
	flags := map[string]bool{"--symmetrise": o.Symmetrise, "--edge-features": len(o.EdgeFeatures) > 0, "--weight": o.Weight != ""}
	for flag, set := range flags {
		if set {
			at.refuse("leave it out: relations have no weights and no edge features; --reverse-relations on stores both directions",
				"%s, but the graph is relational", flag)
		}
	}
}

// maxIDFeatures is the largest number of vertices of a kind that get one-hot ids as features by default. Each id is a
// row of the first weight matrix, and every interval has its own gradient of that matrix. With 64 hidden features,
// 10,000 ids are 640,000 weights.
const maxIDFeatures = 10_000

// memberBytes is the memory for a vertex during an import: label, split and id.
const memberBytes = 4 + 1 + 8

// content returns the dataset.
func (x *relational) content(k *resources, o Options) *graph.Content {
	n := x.of.First(len(x.of.Kinds))
	checkVertices(k.input, n)
	k.require(len(x.of.Kinds) > 0 && len(x.of.Relations) > 0, "import a graph with edges", "it has %d kinds of vertices and %d relations",
		len(x.of.Kinds), len(x.of.Relations))
	check(host.RequireMemory(k.op, k.path, size.Product(n, memberBytes), host.LargerMachine))
	c := &graph.Content{Vertices: n, Relations: &x.of, Labels: unlabelled(n), Split: make([]uint8, n), IDs: x.ids()}
	var features []graph.Features
	columns, target := 0, ""
	for i, kind := range x.kinds {
		features = append(features, kind.Features)
		columns += max(kind.Features.Dim, 1)
		if kind.Classes == 0 && !slices.ContainsFunc(kind.Labels, func(l int32) bool { return l != graph.Unlabelled }) {
			continue
		}
		if name := x.of.Kinds[i].Name; target == "" {
			target = name
		} else if kind.Classes == 0 || kind.Classes != c.Classes || c.Targets != nil || kind.Targets != nil ||
			!slices.Equal(kind.ClassNames, c.ClassNames) {
			k.require(false, "delete the labels of all kinds but one; of tables, name one with --label KIND.COLUMN",
				"the kinds %q and %q have labels, but not of the same classes", target, name)
		}
		x.setLabels(c, kind, x.of.First(i))
	}
	k.require(columns < math.MaxInt32, "reduce the features", "the kinds have %d columns of features", columns)
	maxIDs := int64(maxIDFeatures)
	if x.fromTables {
		maxIDs = -1
	} else {
		x.addReverse(o)
	}
	c.Features = x.of.JoinFeatures(features, maxIDs, o.Normalize)
	c.Edges = x.of.WithReverse(x.each)
	for i, kind := range x.of.Kinds {
		labels := ""
		if x.kinds[i].Classes > 0 || kind.Name == target {
			labels = "; this kind has the labels"
		}
		o.Log("kind=%s vertices=%d features: %s%s", kind.Name, kind.Vertices, kind.FeatureText(features[i].Dim), labels)
		if !slices.ContainsFunc(x.of.Relations, func(r graph.Relation) bool { return r.From == i || r.To == i }) {
			o.Log("warning: no relation has vertices of kind %s, which learn nothing from others; relations name their kinds", kind.Name)
		}
	}
	return c
}

// setLabels sets the labels and the split of a kind, whose first vertex is first.
func (x *relational) setLabels(c, kind *graph.Content, first int64) {
	c.Task, c.Classes, c.ClassNames, c.TargetScaling = kind.Task, kind.Classes, kind.ClassNames, kind.TargetScaling
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
	all := &idIndex{offsets: []int64{0}}
	for _, c := range x.kinds {
		for v := range int(c.Vertices) {
			all.text = append(all.text, c.IDs.At(v)...)
			all.offsets = append(all.offsets, int64(len(all.text)))
		}
	}
	return all.ids()
}

// checkKindName refuses a name that cannot be part of KIND:ID or of a file's name.
func checkKindName(at input, name string) {
	at.require(name != "" && name != ".." && utf8.ValidString(name) && !strings.ContainsFunc(name, func(c rune) bool {
		return c < ' ' || strings.ContainsRune(`/\:`, c)
	}), "rename it without colons, slashes and control characters", "the kind or relation %.60q has an invalid name", name)
}
