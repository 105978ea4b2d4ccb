package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Relations describes a relational graph (heterogeneous graph): its kinds of vertices and of edges.
type Relations struct {
	Kinds     []VertexKind `json:"kinds"`
	Relations []Relation   `json:"relations"`
}

// VertexKind is a kind of vertices. The vertices of a kind have consecutive numbers, and kinds follow
// one another from vertex 0 on.
type VertexKind struct {
	Name     string `json:"name"`
	Vertices int64  `json:"vertices"`
	// The vertices of the kind have non-zero features only in the columns FirstFeature to
	// FirstFeature+Features-1.
	FirstFeature int `json:"first_feature"`
	Features     int `json:"features"`
	// Labels is the number of vertices with a label. Write sets it.
	Labels int64 `json:"labels,omitempty"`
	// Table records the columns of the kind's features, from column FirstFeature on; nil: not imported from
	// a table.
	Table *Table `json:"table,omitempty"`
}

// Relation is a kind of edges, which lead from vertices of one kind to vertices of one kind.
type Relation struct {
	Name string `json:"name"`
	From int    `json:"from"` // index of a kind
	To   int    `json:"to"`
	// Reverse reports whether the relation contains the edges of an earlier relation in the other
	// direction. Inverse is the index of that relation, and of the added relation in that one; -1: none.
	Reverse bool  `json:"reverse,omitempty"`
	Inverse int   `json:"inverse"`
	Edges   int64 `json:"edges"` // as stored; Write sets it
	// Targets is the number of vertices with an edge of the relation into them; Write sets it.
	Targets int64    `json:"targets"`
	Ends    []string `json:"ends,omitempty"` // columns of source and destination in the relation's own table
}

// RelatedSource is an EdgeSource whose edges have relations: indices into Content.Relations. Repeated
// edges of one relation are merged. Edges with different relations between two vertices are distinct.
type RelatedSource interface {
	EdgeSource
	EachRelation(yield func(src, dst uint32, relation uint16) error) error
}

// MaxRelations is the maximum number of relations of a dataset.
const MaxRelations = 1 << 15

// First returns the first vertex of a kind, or the number of all vertices for the number of kinds.
func (r *Relations) First(kind int) (first int64) {
	for _, k := range r.Kinds[:kind] {
		first += k.Vertices
	}
	return first
}

// KindOf returns the kind of vertex v.
func (r *Relations) KindOf(v int64) int {
	for k, kind := range r.Kinds {
		if v < kind.Vertices {
			return k
		}
		v -= kind.Vertices
	}
	return -1
}

// Kind returns the index of the kind with a name, -1 if there is none.
func (r *Relations) Kind(name string) int {
	return slices.IndexFunc(r.Kinds, func(k VertexKind) bool { return k.Name == name })
}

// Span returns the vertices first to first+n-1 of a kind.
func (r *Relations) Span(kind int) (first uint32, n int64) {
	return uint32(r.First(kind)), r.Kinds[kind].Vertices
}

// Scored returns the number of relations up to the last one that is not the reverse of another. Scores of
// edges need weights for these relations.
func (r *Relations) Scored() (n int) {
	for i, x := range r.Relations {
		if !x.Reverse {
			n = i + 1
		}
	}
	return n
}

// VertexName returns the name KIND:ID of vertex v, which is unique. A vertex of a graph with one kind, or
// without relations, is named by its id.
func (d *Dataset) VertexName(v int) string {
	r := d.Meta.Relations
	if r == nil || len(r.Kinds) == 1 {
		return d.IDs.At(v)
	}
	return r.Kinds[r.KindOf(int64(v))].Name + ":" + d.IDs.At(v)
}

// Labels returns the number of vertices with a label.
func (r *Relations) Labels() (n int64) {
	for _, k := range r.Kinds {
		n += k.Labels
	}
	return n
}

// withoutEdges returns a copy without the numbers of edges.
func (r *Relations) withoutEdges() *Relations {
	s := &Relations{slices.Clone(r.Kinds), slices.Clone(r.Relations)}
	for i := range s.Relations {
		s.Relations[i].Edges, s.Relations[i].Targets = 0, 0
	}
	return s
}

// schema returns the relations without the numbers of vertices and edges.
func (r *Relations) schema() *Relations {
	if r == nil {
		return nil
	}
	s := r.withoutEdges()
	for k := range s.Kinds {
		s.Kinds[k].Vertices = 0
	}
	return s
}

// features returns the number of columns of the features of all kinds.
func (r *Relations) features() (dim int) {
	for _, k := range r.Kinds {
		dim = max(dim, k.FirstFeature+k.Features)
	}
	return dim
}

// Label returns the name of a relation with the names of its kinds, as in paper-writes-author.
func (r *Relations) Label(relation int) string {
	x := r.Relations[relation]
	return fmt.Sprintf("%s-%s-%s", r.Kinds[x.From].Name, x.Name, r.Kinds[x.To].Name)
}

// AddReverse appends the reverse of a relation, with the name rev_NAME, and returns its index. It
// does not change edges: the source must yield them.
func (r *Relations) AddReverse(relation int) int {
	x, added := &r.Relations[relation], len(r.Relations)
	x.Inverse = added
	r.Relations = append(r.Relations, Relation{Name: "rev_" + x.Name, From: x.To, To: x.From, Reverse: true, Inverse: relation})
	return added
}

// check returns an error if the relations cannot be those of a dataset with the given numbers of
// vertices and features.
func (r *Relations) check(vertices int64, features int) error {
	if r == nil {
		return nil
	}
	if len(r.Kinds) == 0 || len(r.Relations) > MaxRelations {
		return fmt.Errorf("it has %d kinds of vertices and %d relations; a dataset has 1 kind at least and %d relations at most",
			len(r.Kinds), len(r.Relations), MaxRelations)
	}
	names := map[string]bool{}
	for _, k := range r.Kinds {
		if k.Name == "" || names[k.Name] || k.Vertices < 0 || k.FirstFeature < 0 || k.Features < 0 || k.FirstFeature > features-k.Features {
			return fmt.Errorf("its kind %q of %d vertices with the features %d to %d is invalid", k.Name, k.Vertices, k.FirstFeature,
				k.FirstFeature+k.Features-1)
		}
		names[k.Name] = true
		if err := k.Table.check(); err != nil {
			return fmt.Errorf("its kind %s: %w", k.Name, err)
		}
		if k.Table != nil && (k.Table.Features() != k.Features || slices.ContainsFunc(k.Table.Columns, func(c Column) bool {
			from := r.Kind(c.Name)
			return (c.Kind == IndicatorColumn) != (c.First+c.Width == k.Features) ||
				c.Kind == MeanColumn && (from < 0 || r.Kinds[from].Features != c.Width+1) // of features that exist
		})) {
			return fmt.Errorf("the columns of its kind %s contradict its %d features", k.Name, k.Features)
		}
	}
	if sum := r.First(len(r.Kinds)); sum != vertices {
		return fmt.Errorf("its kinds have %d vertices, but there are %d", sum, vertices)
	}
	for i, x := range r.Relations {
		if min(x.From, x.To) < 0 || max(x.From, x.To) >= len(r.Kinds) || x.Inverse < -1 || x.Inverse >= len(r.Relations) || x.Edges < 0 ||
			len(x.Ends) != 0 && len(x.Ends) != 2 {
			return fmt.Errorf("its relation %d (%q) from kind %d to kind %d is invalid", i, x.Name, x.From, x.To)
		}
	}
	return nil
}

// FromTables reports whether every kind was imported from a table.
func (r *Relations) FromTables() bool {
	return r != nil && !slices.ContainsFunc(r.Kinds, func(k VertexKind) bool { return k.Table == nil })
}

// validateRelations checks the relations of a content before edges are read.
func (c *Content) validateRelations() error {
	if c.Relations == nil {
		return nil
	}
	if err := c.Relations.check(c.Vertices, c.Features.Dim); err != nil {
		return invalid("fix the importer's description of kinds and relations", "%v", err)
	}
	if _, ok := c.Edges.(RelatedSource); !ok || c.Symmetrise {
		return invalid("give each edge a relation, and add reverse relations instead", "the edges of a relational graph have no relations")
	}
	c.Relations = c.Relations.withoutEdges()
	for k := range c.Relations.Kinds {
		c.Relations.Kinds[k].Labels = 0
	}
	return nil
}

// fillRelated reads edges with relations into the open windows.
func (w *windows) fillRelated() error {
	n, in, out, i := len(w.in.offsets)-1, w.in, w.out, int64(-1)
	return w.related.EachRelation(func(s, d uint32, relation uint16) error {
		i++
		if int(relation) >= len(w.relations.Relations) {
			return invalid("number relations from 0", "edge %d, %d → %d, has relation %d of %d", i, s, d, relation,
				len(w.relations.Relations))
		}
		if int(s) >= n || int(d) >= n {
			return changed()
		}
		if x := w.relations.Relations[relation]; w.kinds[s] != uint16(x.From) || w.kinds[d] != uint16(x.To) {
			return invalid("fix the edge, or the kinds of the relation", "edge %d, %d → %d, of relation %s leads from kind %s to kind %s",
				i, s, d, w.relations.Label(int(relation)), w.relations.Kinds[w.kinds[s]].Name, w.relations.Kinds[w.kinds[d]].Name)
		}
		if s == d {
			return nil
		}
		if !in.putWith(d, s, 0, nil, relation) || !out.putWith(s, d, 0, nil, relation) {
			return changed()
		}
		return nil
	})
}

// countRelations adds the edges of the window to those of their relations.
func (d *direction) countRelations(relations []Relation) {
	for row := range d.window.Rows() {
		before := -1
		for _, r := range d.relations[d.window.Offsets[row]:d.window.Offsets[row+1]] {
			if relations[r].Edges++; int(r) != before {
				relations[r].Targets++
			}
			before = int(r)
		}
	}
}

// group sorts the edges of a row by relation and then by column, moves the distinct edges to the
// front, and returns their number.
func (m *rowMerger) group(cols []uint32, relations []uint16) (kept int) {
	m.keys = m.keys[:0]
	for i, c := range cols {
		m.keys = append(m.keys, uint64(relations[i])<<32|uint64(c))
	}
	slices.Sort(m.keys)
	m.keys = slices.Compact(m.keys)
	for i, key := range m.keys {
		cols[i], relations[i] = uint32(key), uint16(key>>32)
	}
	return len(m.keys)
}

// relations maps the relations of in-edges.
func (l *loader) relations() {
	r := l.Meta.Relations
	if r == nil {
		return
	}
	p := l.open(relationFile, relationKind)
	l.Relations = array[uint16](p, "relations", l.Meta.Edges)
	if p.reads() {
		if i := slices.IndexFunc(l.Relations, func(x uint16) bool { return int(x) >= len(r.Relations) }); i >= 0 {
			p.bad("edge %d has relation %d of %d", i, l.Relations[i], len(r.Relations))
		}
	}
}

// otherRelations returns the first difference between the kinds and, if edges is set, the relations of a
// model and a dataset, or "".
func otherRelations(model, data *Relations, edges bool) string {
	switch {
	case model == nil && data == nil:
		return ""
	case model == nil:
		return "it has kinds of vertices, the model was trained on a graph without them"
	case data == nil:
		return "it has no kinds of vertices, the model was trained on a graph with them"
	}
	names := func(r *Relations) (kinds, relations []string) {
		for _, k := range r.Kinds {
			kinds = append(kinds, k.Name)
		}
		for i := range r.Relations {
			relations = append(relations, r.Label(i))
		}
		return kinds, relations
	}
	kinds, relations := names(model)
	otherKinds, others := names(data)
	switch {
	case !slices.Equal(kinds, otherKinds):
		return fmt.Sprintf("its kinds of vertices are %.200s, the model's are %.200s", strings.Join(otherKinds, ", "),
			strings.Join(kinds, ", "))
	case edges && !slices.Equal(relations, others):
		return fmt.Sprintf("its relations are %.300s, the model's are %.300s", strings.Join(others, ", "), strings.Join(relations, ", "))
	}
	for k, m := range model.Kinds {
		d := data.Kinds[k]
		if m.FirstFeature != d.FirstFeature || m.Features != d.Features {
			return fmt.Sprintf("its kind %s has the features %d to %d, the model's has %d to %d", m.Name, d.FirstFeature,
				d.FirstFeature+d.Features-1, m.FirstFeature, m.FirstFeature+m.Features-1)
		}
		if why := otherTable(m.Table, d.Table); why != "" {
			return "kind " + m.Name + ": " + why
		}
	}
	return ""
}
