package graph

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/host"
)

// rewritten changes meta.json of a dataset folder, with a valid checksum.
func rewritten(t *testing.T, dir string, change func(*Meta)) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, metaFile))
	if err != nil {
		t.Fatal(err)
	}
	m := new(Meta)
	if err := json.Unmarshal(text, m); err != nil {
		t.Fatal(err)
	}
	change(m)
	m.Checksum, _ = m.sum()
	text, err = json.Marshal(m)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, metaFile), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestOneWayEdges: partitioners and ranks rely on both directions of an undirected graph, so that
// Open refuses edges in one direction with valid checksums.
func TestOneWayEdges(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "g")
	c := Content{Vertices: 3, Edges: EdgePairs{0, 1, 1, 2}, Features: Features{Rows: 3, Dim: 1, Dense: []float32{1, 2, 3}},
		Labels: []int32{0, 1, 0}, Split: []uint8{1, 1, 1}}
	if _, err := Write(dir, c, false); err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	rewritten(t, dir, func(m *Meta) { m.Directed = false })
	if _, err := Open(dir); fault.KindOf(err) != fault.Data ||
		!strings.Contains(err.Error(), "its edges differ between the two directions, but meta.json has directed=false") {
		t.Errorf("got %v", err)
	}
}

// TestSchemaCheck: columns that an import with --like could not use are refused when a dataset is
// opened.
func TestSchemaCheck(t *testing.T) {
	number := Column{Name: "a", Kind: NumberColumn, Width: 1, Scale: 1}
	second := Column{Name: "b", Kind: CategoryColumn, First: 1, Width: 2, Values: []string{"x", "y"}}
	with := func(change func(*Column)) *Table {
		c := second
		change(&c)
		return &Table{Columns: []Column{number, c}}
	}
	for name, s := range map[string]Schema{
		"another place":  {Table: with(func(c *Column) { c.First = 0 })},
		"negative place": {Table: with(func(c *Column) { c.First = -1 })},
		"no width":       {Table: with(func(c *Column) { c.Width = 0 })},
		"values":         {Table: with(func(c *Column) { c.Values = c.Values[:1] })},
		"scale":          {Table: with(func(c *Column) { c.Kind, c.Width, c.Scale = NumberColumn, 1, 0 })},
		"date":           {Table: with(func(c *Column) { c.Kind, c.Width, c.Scale = DateColumn, 6, 1 })},
		"hash":           {Table: with(func(c *Column) { c.Kind, c.Width = HashColumn, 1<<31 })},
		"kind":           {Table: with(func(c *Column) { c.Kind = "poem" })},
		"edges":          {Table: &Table{Columns: []Column{number}, EdgeColumns: []Column{{Name: "w", Kind: HashColumn, Width: 4}}}},
		"no columns":     {Table: &Table{}},
		"ends":           {EdgeImport: &EdgeImport{Ends: []string{"a"}}},
		"task":           {Task: "poetry"},
	} {
		if s.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for name, s := range map[string]Schema{"plain": {},
		"columns": {Task: Regression, Table: with(func(*Column) {}), EdgeImport: &EdgeImport{Ends: []string{"a", "b"}}}} {
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "g")
	c := Content{Vertices: 2, Edges: EdgePairs{0, 1}, Symmetrise: true, Features: Features{Rows: 2, Dim: 3, Dense: make([]float32, 6)},
		Labels: []int32{0, 1}, Split: []uint8{1, 1}, Table: with(func(*Column) {})}
	if _, err := Write(dir, c, false); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(m *Meta){
		`column "b"`:                   func(m *Meta) { m.Table.Columns[1].First = 7 },
		"its columns have 1 features,": func(m *Meta) { m.Table.Columns = m.Table.Columns[:1] },
	} {
		rewritten(t, dir, change)
		if _, err := ReadMeta(dir); fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		rewritten(t, dir, func(m *Meta) { m.Table = with(func(*Column) {}) })
	}
}

// TestMemoryFirst: Write asks for the memory of the vertices' degrees before it allocates them.
func TestMemoryFirst(t *testing.T) {
	defer host.LimitMemory(1 << 20)()
	const n = 100_000
	c := Content{Vertices: n, Edges: EdgePairs{0, 1}, Features: Features{Rows: n, Dim: 1, Dense: make([]float32, n)},
		Labels: make([]int32, n), Split: make([]uint8, n)}
	if _, err := Write(filepath.Join(t.TempDir(), "g"), c, false); fault.KindOf(err) != fault.Config {
		t.Errorf("got %v", err)
	}
}
