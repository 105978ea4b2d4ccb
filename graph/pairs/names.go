package pairs

import (
	"strconv"

	"siafu/graph"
)

// Names maps the user's ids to the vertices of a dataset.
type Names struct {
	n     int64
	ints  map[int64]uint32
	words map[string]uint32

	of        *graph.Relations  // nil: the graph is not relational
	relations map[string]uint16 // nil if the graph is not relational
}

// NewNames returns the Names of the vertices and relations of a dataset. Vertices of a graph with several kinds
// are named KIND:ID.
func NewNames(ds *graph.Dataset) *Names {
	n, ids, r := ds.Meta.Vertices, ds.IDs, ds.Meta.Relations
	names := &Names{n: n, of: r}
	switch {
	case r != nil && len(r.Kinds) > 1, ids != nil && ids.Offsets != nil:
		names.words = make(map[string]uint32, n)
		for v := range n {
			names.words[ds.VertexName(int(v))] = uint32(v)
		}
	case ids != nil && ids.Ints != nil:
		names.ints = make(map[int64]uint32, n)
		for v, id := range ids.Ints {
			names.ints[id] = uint32(v)
		}
	}
	if r == nil {
		return names
	}
	names.relations = map[string]uint16{}
	for i, x := range r.Relations {
		if _, repeated := names.relations[x.Name]; !repeated && !x.Reverse {
			names.relations[x.Name] = uint16(i)
		}
		names.relations[r.Label(i)] = uint16(i)
	}
	return names
}

// withKind returns the names KIND:ID of the vertices with an id in a graph of several kinds.
func (n *Names) withKind(id string) (list []string) {
	if n.of == nil || len(n.of.Kinds) < 2 {
		return nil
	}
	for _, k := range n.of.Kinds {
		if _, ok := n.words[k.Name+":"+id]; ok {
			list = append(list, k.Name+":"+id)
		}
	}
	return list
}

// word returns the vertex with the given id.
func (n *Names) word(id string) (v uint32, ok bool) {
	if n.words != nil {
		v, ok = n.words[id]
		return v, ok
	}
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return 0, false
	}
	return n.number(number)
}

// number returns the vertex with the given integer id.
func (n *Names) number(id int64) (v uint32, ok bool) {
	switch {
	case n.words != nil:
		v, ok = n.words[strconv.FormatInt(id, 10)]
	case n.ints != nil:
		v, ok = n.ints[id]
	default:
		v, ok = uint32(id), 0 <= id && id < n.n
	}
	return v, ok
}
