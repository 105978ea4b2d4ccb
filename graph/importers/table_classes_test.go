package importers

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"siafu/graph"
)

// TestLabelsAreNumbers: whole numbers are ordered by value in any notation, and are the class
// numbers if possible.
func TestLabelsAreNumbers(t *testing.T) {
	for _, c := range []struct {
		labels string
		want   []int32
		names  []string
	}{
		{"10 9.0 NaN 100", []int32{1, 0, -1, 2}, []string{"9", "10", "100"}},
		{"1 0 0 2.0", []int32{1, 0, 0, 2}, nil},
		{"-1 1 0 -1.0", []int32{-1, 1, 0, -1}, nil},
		{"-1 b a b", []int32{-1, 1, 0, 1}, []string{"a", "b"}},
		{"NA 1 1 x", []int32{-1, 0, 0, 1}, []string{"1", "x"}},
		{"01 1 1.0 007", []int32{0, 1, 1, 2}, []string{"01", "1", "007"}},
		{"2024_01 202401 2024_01 7", []int32{1, 0, 1, 2}, []string{"202401", "2024_01", "7"}},
	} {
		nodes := "id,label,x\n"
		for v, l := range strings.Fields(c.labels) {
			nodes += fmt.Sprintf("%d,%s,1\n", v, l)
		}
		got, err := importTable(t, nodes, "src,dst\n", Options{})
		if err != nil || !slices.Equal(got.Labels, c.want) || !slices.Equal(got.ClassNames, c.names) || got.IDs != nil {
			t.Errorf("%s: %v, labels %v, classes %q", c.labels, err, got.Labels, got.ClassNames)
			continue
		}
		minus := strings.Count(c.labels, "-1")
		want := fmt.Sprintf("warning: label=label: -1 means no label, vertices=%d;", minus)
		if strings.Contains(got.log, want) != (minus > 0) {
			t.Errorf("%s: log is\n%s", c.labels, got.log)
		}
	}
}

// TestOneClass: an import warns of labels that leave one class, as -1 and 1 do.
func TestOneClass(t *testing.T) {
	for _, c := range []struct {
		from  string
		files map[string][]byte
		warns bool
	}{
		{"csv", map[string][]byte{"nodes.csv": []byte("id,label,x\na,-1,1\nb,1,2\n"), "edges.csv": []byte("src,dst\n")}, true},
		{"csv", map[string][]byte{"nodes.csv": []byte("id,label,x\na,0,1\nb,1,2\n"), "edges.csv": []byte("src,dst\n")}, false},
		{"raw", with(tinyRaw(), "labels.bin", little([]int32{-1, 1, 1, -1}), "split.bin", []byte{0, 1, 2, 0}), true},
		{"raw", tinyRaw(), false},
	} {
		_, log := imported(t, c.from, Options{Src: files(t, c.files)})
		if strings.Contains(log, "warning: all labelled vertices have the same class") != c.warns {
			t.Errorf("%s: want a warning: %t, log is\n%s", c.from, c.warns, log)
		}
	}
}

// TestParquetCodes: labels and codes of Parquet follow the rules of CSV: -1 is no label, and a
// code is one category whether its column holds whole numbers or, with nulls, floats.
func TestParquetCodes(t *testing.T) {
	type row struct {
		ID    int64    `parquet:"id"`
		Label int64    `parquet:"label"`
		Zip   string   `parquet:"zip"`
		Shop  *float64 `parquet:"shop,optional"`
	}
	shop := 1234567.0
	dir := t.TempDir()
	if err := parquet.WriteFile(filepath.Join(dir, "nodes.parquet"),
		[]row{{1, -1, "01", &shop}, {2, 1, "1", nil}, {3, 0, "01", &shop}}); err != nil {
		t.Fatal(err)
	}
	type edge struct {
		Src int64 `parquet:"src"`
		Dst int64 `parquet:"dst"`
	}
	if err := parquet.WriteFile(filepath.Join(dir, "edges.parquet"), []edge{{1, 2}}); err != nil {
		t.Fatal(err)
	}
	got := mustLoad(t, "parquet", Options{Src: dir, TableOptions: TableOptions{Categories: []string{"zip", "shop"}, Fill: "zero"}})
	zip, shops := got.Table.Columns[0], got.Table.Columns[1]
	if !slices.Equal(got.Labels, []int32{-1, 1, 0}) || !slices.Equal(zip.Values, []string{"01", "1"}) ||
		!slices.Equal(shops.Values, []string{"1234567"}) {
		t.Errorf("labels %v, zips %q, shops %q", got.Labels, zip.Values, shops.Values)
	}
	if want := []float32{1, 0, 1, 0, 1, 0, 1, 0, 1}; !slices.Equal(got.dense, want) ||
		!strings.Contains(got.log, "-1 means no label, vertices=1;") {
		t.Errorf("features %v, want %v, log\n%s", got.dense, want, got.log)
	}
}

// TestLikeKeepsClassNames: --like accepts labels by the names that the classes have in the
// earlier dataset: -1, and numbers without their leading zeros.
func TestLikeKeepsClassNames(t *testing.T) {
	schema := &graph.Schema{ClassNames: []string{"-1", "1", "7"}, Classes: 3,
		Table: &graph.Table{ID: "id", Label: "label", Split: "split",
			Columns: []graph.Column{{Name: "x", Kind: graph.NumberColumn, Width: 1, Scale: 1}}}}
	got, err := importTable(t, "id,label,x\na,-1,1\nb,007,2\nc,1,3\nd,,4\n", "src,dst\n",
		Options{Schema: schema, TableOptions: TableOptions{Like: "run"}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Labels, []int32{0, 2, 1, -1}) {
		t.Errorf("labels %v", got.Labels)
	}
}

// TestNumbers: cells are numbers in the notation of tables, not of Go.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		cell string
		want float64
		ok   bool
	}{
		{"1.50", 1.5, true}, {"-2e3", -2000, true}, {"123456789012345678901", 123456789012345678901, true},
		{"2024_01", 0, false}, {"1_000", 0, false}, {"0x1p3", 0, false}, {"inf", 0, false}, {"nan", 0, false}, {"", 0, false},
	} {
		if x, ok := number([]byte(c.cell)); ok != c.ok || ok && x != c.want {
			t.Errorf("%q is %v, %t, want %v, %t", c.cell, x, ok, c.want, c.ok)
		}
	}
	for cell, want := range map[string]string{"7.0": "7", "1.5e1": "15", "007": "007", "0": "0", "0.0": "0",
		"0.5": "0.5", "x.0": "x.0", "-01": "-01"} {
		if got := plainNumber([]byte(cell)); got != want {
			t.Errorf("%q is named %q, want %q", cell, got, want)
		}
	}
}
