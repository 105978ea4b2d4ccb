package importers

import (
	"slices"
	"strings"

	"siafu/graph"
)

// Beginnings of the names of the arrays of a relational graph.
const (
	npzKind     = "nodes."
	npzRelation = "edge."
	npzSplit    = "split."
)

// npzArrays gives arrays by the names that pygRelational reads.
type npzArrays struct {
	zipArrays
	names map[string]string // in the file
}

func (n npzArrays) Has(name string) bool {
	return n.names[name] != "" && n.zipArrays.Has(n.names[name])
}

func (n npzArrays) get(name string) ndarray { return n.zipArrays.get(n.names[name]) }

// relational reads the arrays nodes.KIND, edge.FROM.RELATION.TO, x.KIND, y.KIND and split.NAME.train.
func (z zipArrays) relational(k *resources, o Options) *graph.Content {
	refuseRelational(k.input, o)
	split := z.chooseSplit(o)
	o.Split = "" // the masks of a kind have none
	var kinds []kindArrays
	var relations []relationArrays
	for _, name := range z.Names() {
		if kind, ok := strings.CutPrefix(name, npzKind); ok {
			names := map[string]string{"num_nodes": name, "x": "x." + kind, "y": "y." + kind}
			of := kindArrays{name: kind, namedArrays: npzArrays{z, names}}
			if z.Has("x." + kind + ".indptr") {
				of.sparse = z.matrix("x." + kind + ".")
			}
			if split != "" && of.Has("y") {
				of.split = func(n int64) []uint8 { return z.split(split, n) }
			}
			kinds = append(kinds, of)
		} else if label, ok := strings.CutPrefix(name, npzRelation); ok {
			words := strings.Split(label, ".")
			z.require(len(words) == 3, "rename kinds and relations that contain dots", "%q is not edge.FROM.RELATION.TO", name)
			relations = append(relations, relationArrays{words[0], words[1], words[2], npzArrays{z, map[string]string{"edge_index": name}}})
		}
	}
	return pygRelational(k, o, kinds, relations)
}

// chooseSplit returns the beginning of the names of the arrays of the split, "" if there are none.
func (z zipArrays) chooseSplit(o Options) string {
	if z.Has(npzSplit+"train") && o.Split == "" {
		return npzSplit
	}
	var names []string
	for _, name := range z.Names() {
		name, isTrain := strings.CutSuffix(name, ".train")
		if name, isSplit := strings.CutPrefix(name, npzSplit); isTrain && isSplit {
			names = append(names, name)
		}
	}
	switch list := strings.Join(names, ", "); {
	case len(names) == 0:
		z.noChoice(o, "the file has no splits with names")
		return ""
	case o.Split == "" && len(names) > 1:
		z.refuse("choose one of them with --split", "the file has the splits %s", list)
	case o.Split != "" && !slices.Contains(names, o.Split):
		z.refuse("choose one of "+list, "there is no split %q", o.Split)
	case o.Split != "":
		return npzSplit + o.Split + "."
	}
	return npzSplit + names[0] + "."
}

// split reads lists of vertices of the labelled kind, which has n vertices. prefix is the beginning of their names.
func (z zipArrays) split(prefix string, n int64) []uint8 {
	s := make(splitter, n)
	for i, name := range []string{"train", "val", "test"} {
		if z.Has(prefix + name) {
			a := z.get(prefix + name)
			s.markAll(a.input, a.integers(-1), uint8(graph.SplitTrain+i))
		}
	}
	return s
}
