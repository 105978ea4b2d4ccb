package graph

import (
	"encoding/json"
	"strings"
	"testing"
)

// relationalMeta is the description of a relational dataset whose first kind was imported from a table.
func relationalMeta() *Meta {
	column := Column{Name: "x", Kind: NumberColumn, Width: 1, Scale: 1}
	r := &Relations{
		Kinds: []VertexKind{{Name: "user", Vertices: 5, Features: 2, Labels: 3,
			Table: &Table{ID: "id", Columns: []Column{column, {Kind: IndicatorColumn, First: 1, Width: 1}}}},
			{Name: "item", Vertices: 4, FirstFeature: 2, Features: 1, Table: &Table{Columns: []Column{{Kind: IndicatorColumn, Width: 1}}}}},
		Relations: []Relation{{Name: "buys", To: 1, Edges: 7, Inverse: -1}, {Name: "knows", Inverse: -1, Edges: 2}},
	}
	r.AddReverse(0)
	return &Meta{Name: "shop", Task: MultiClass, Classes: 2, Vertices: 9, FeatureDim: 3, Relations: r}
}

// TestRelationsFit: a network takes only datasets with its kinds, relations and columns, in the same order,
// and any number of vertices and edges. A network that uses no edges takes any relations.
func TestRelationsFit(t *testing.T) {
	every := EdgeUse{Edges: true}
	for says, change := range map[string]func(m *Meta){
		"": func(m *Meta) {
			m.Relations.Kinds[0].Vertices, m.Relations.Relations[1].Edges, m.Relations.Kinds[1].Labels = 90, 1, 4
		},
		"it has no kinds of vertices":                       func(m *Meta) { m.Relations = nil },
		"its kinds of vertices are person, item":            func(m *Meta) { m.Relations.Kinds[0].Name = "person" },
		"its relations are user-sells-item":                 func(m *Meta) { m.Relations.Relations[0].Name = "sells" },
		"its relations are user-buys-item, user-knows-item": func(m *Meta) { m.Relations.Relations[1].To = 1 },
		"its kind item has the features 2 to 3":             func(m *Meta) { m.Relations.Kinds[1].Features = 2 },
		`kind user: its column "x" is less 4`:               func(m *Meta) { m.Relations.Kinds[0].Table.Columns[0].Mean = 4 },
	} {
		m := relationalMeta()
		change(m)
		text, err := json.Marshal(relationalMeta().Schema()) // as a model stores it
		if err != nil {
			t.Fatal(err)
		}
		s := &Schema{Classes: 2}
		if err := json.Unmarshal(text, s); err != nil || s.Check() != nil || s.Features() != 3 || s.IsPlain() {
			t.Fatal(err, s.Check(), s)
		}
		err = s.Fits("predict", "data", m, every)
		if (says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
		if strings.Contains(says, "relations") {
			if err := s.Fits("predict", "data", m, EdgeUse{}); err != nil {
				t.Errorf("a network without edges refuses %q: %v", says, err)
			}
		}
	}
	if err := (&Schema{Classes: 2}).Fits("predict", "data", relationalMeta(), every); err == nil {
		t.Error("a network of a plain graph takes a relational one")
	}
	for name, change := range map[string]func(r *Relations){
		"columns":  func(r *Relations) { r.Kinds[0].Table.Columns[1].First = 0 },
		"features": func(r *Relations) { r.Kinds[0].Features, r.Kinds[1].FirstFeature = 3, 3 },
		"name":     func(r *Relations) { r.Kinds[0].Name = "item" },
		"kinds":    func(r *Relations) { r.Relations[0].To = 2 },
		"ends":     func(r *Relations) { r.Relations[0].Ends = []string{"a", "b", "c"} },
		"means": func(r *Relations) {
			r.Kinds[0].Table.Columns[0] = Column{Name: "nobody", Kind: MeanColumn, Width: 1}
		},
		"indicator": func(r *Relations) { r.Kinds[1].Table.Columns[0].Kind = HashColumn },
	} {
		s := relationalMeta().Schema()
		change(s.Relations)
		if s.Check() == nil {
			t.Errorf("a schema with bad %s passes", name)
		}
	}
}
