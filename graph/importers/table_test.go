package importers

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/testkit/decodertest"
)

// people is a table of six vertices: a number with two gaps, categories, codes,
// and texts.
const people = `id,label,split,income,city,code,about
ann,gold,train,1000,Oslo,7,likes fish and boats
bob,none of it,train,3000,"Paris, Texas",7,boats
cy,gold,train,NA,Oslo,9,
di,,,5000,Oslo,9,Fish!
ed,gold,val,,Oslo,7,fish fish
flo,none of it,test,2000,"Paris, Texas",9,nothing known
`

func importTable(t *testing.T, nodes, edges string, o Options) (*loaded, error) {
	t.Helper()
	o.Src = files(t, map[string][]byte{"nodes.csv": []byte(nodes), "edges.csv": []byte(edges)})
	return load(t, "csv", o)
}

// TestColumns: the features of a table's columns, their record in the dataset, and the log.
func TestColumns(t *testing.T) {
	const edges = "src,dst,weight\nann,bob,1\nbob,cy,0\ncy,flo,1\n"
	whole := strings.NewReplacer("NA", "4000", "5000,", "5000,", "ed,gold,val,,", "ed,gold,val,0,").Replace(people)
	for _, c := range []struct {
		name, nodes string
		o           TableOptions
		want        map[int][]float32 // feature: values
		dim         int
		says        []string
	}{
		{"guessed", whole, TableOptions{},
			map[int][]float32{0: {1000, 3000, 4000, 5000, 0, 2000}, 1: {1, 0, 1, 1, 1, 0}, 2: {0, 1, 0, 0, 0, 1}, 3: {7, 7, 9, 9, 7, 9}}, 4,
			[]string{`dropped column=about: it is text with 5 different values, such as "likes fish and boats": import it with --words ` +
				`about, --hash about or --categories about`, "warning: scales of features differ by a factor of 3.03e+03 (income about " +
				"3.03e+03, other features about 1)", "weight_0=1", "classes=2: gold, none of it"}},
		{"standardised", whole, TableOptions{Standardise: true, Features: []string{"income"}},
			map[int][]float32{0: {-1.3363063, 0.26726124, 1.069045, 1.8708287, -2.1380899, -0.5345225}}, 1,
			[]string{"column=income kind=number features=1 mean=2666.67 scale=1247.22",
				"dropped column=city: --features does not name it"}},
		{"filled", people, TableOptions{Fill: "mean", Features: []string{"income", "city"}},
			map[int][]float32{0: {1000, 3000, 2000, 5000, 2000, 2000}}, 3, []string{"missing=2 filled_with=2000"}},
		{"filled with zero", people, TableOptions{Fill: "zero", Standardise: true, Features: []string{"income"}},
			map[int][]float32{0: {-1, 1, -2, 3, -2, 0}}, 1, []string{"missing=2 filled_with=0"}},
		{"codes", people, TableOptions{Categories: []string{"code"}, Features: []string{"code"}},
			map[int][]float32{0: {1, 1, 0, 0, 1, 0}, 1: {0, 0, 1, 1, 0, 1}}, 2, []string{"kind=category features=2"}},
		{"words", people, TableOptions{Words: []string{"about"}, Features: []string{"about"}},
			map[int][]float32{0: {1, 0, 0, 1, 1, 0}, 1: {1, 1, 0, 0, 0, 0}}, 6, []string{"kind=words features=6"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := importTable(t, c.nodes, edges, Options{TableOptions: c.o})
			if err != nil {
				t.Fatal(err)
			}
			if got.Features.Dim != c.dim {
				t.Fatalf("%d features, want %d", got.Features.Dim, c.dim)
			}
			for f, want := range c.want {
				for v, x := range want {
					if got := got.dense[v*c.dim+f]; math.Abs(float64(got-x)) > 1e-6*math.Abs(float64(x)) { // a rounding of float32
						t.Errorf("feature %d of vertex %d is %v, want %v", f, v, got, x)
					}
				}
			}
			for _, want := range c.says {
				if !strings.Contains(got.log, want) {
					t.Errorf("log lacks %q:\n%s", want, got.log)
				}
			}
			if !slices.Equal(got.Labels, []int32{0, 1, 0, -1, 0, 1}) || !slices.Equal(got.Split, []uint8{1, 1, 1, 0, 2, 3}) ||
				!slices.Equal(got.edges, [][2]uint32{{0, 1}, {2, 5}}) {
				t.Errorf("labels %v, split %v, edges %v", got.Labels, got.Split, got.edges)
			}
			if got.IDs.At(1) != "bob" || !slices.Equal(got.ClassNames, []string{"gold", "none of it"}) {
				t.Errorf("vertex 1 is %s, classes are %q", got.IDs.At(1), got.ClassNames)
			}
		})
	}
}

// TestHashed: equal values share one feature of 64.
func TestHashed(t *testing.T) {
	got, err := importTable(t, people, "src,dst\n", Options{TableOptions: TableOptions{Hash: []string{"city"}, Features: []string{"city"}}})
	if err != nil || got.Features.Dim != hashedColumns {
		t.Fatal(err)
	}
	cols := got.Features.Sparse.Cols
	if len(cols) != 6 || cols[0] != cols[2] || cols[1] != cols[5] || cols[0] == cols[1] {
		t.Errorf("columns are %v", cols)
	}
}

// TestLike: another table is read like the first one, with any order of columns, values and
// labels.
func TestLike(t *testing.T) {
	first := filepath.Join(t.TempDir(), "first")
	o := TableOptions{Standardise: true, Fill: "zero", Words: []string{"about"}}
	src := files(t, map[string][]byte{"nodes.csv": []byte(people), "edges.csv": []byte("src,dst\n")})
	if _, err := Import("csv", Options{Src: src, Dst: first, TableOptions: o}); err != nil {
		t.Fatal(err)
	}
	want := mustLoad(t, "csv", Options{Src: src, TableOptions: o})
	o = TableOptions{Like: first}
	got, err := importTable(t, "about,code,id,city,income\nboats,7,x,\"Paris, Texas\",3000\nunheard,9,y,Rome,\n",
		"src,dst\nx,y\n", Options{TableOptions: o})
	if err != nil {
		t.Fatal(err)
	}
	dim := want.Features.Dim
	if got.Features.Dim != dim || !slices.Equal(got.dense[:dim], want.dense[dim:2*dim]) {
		t.Errorf("x is %v, bob was %v", got.dense[:dim], want.dense[dim:2*dim])
	}
	if !slices.Equal(got.Labels, []int32{-1, -1}) || !slices.Equal(got.ClassNames, want.ClassNames) ||
		!strings.Contains(got.log, "column=city kind=category features=2 unknown_values=1") {
		t.Errorf("labels %v, classes %q, log\n%s", got.Labels, got.ClassNames, got.log)
	}
	for _, c := range []struct{ nodes, want string }{
		{"id,income,city,code\nx,1,Oslo,7\n", `no column "about"`},
		{"about,code,id,city,income,label\na,7,x,Oslo,1,silver\n", `line 2 column 6 (label): "silver" is not a class of`},
	} {
		if _, err := importTable(t, c.nodes, "src,dst\n", Options{TableOptions: o}); fault.KindOf(err) != fault.Data ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// TestBadTables: each bad table is refused with its file, position, value and
// remedy, and leaves nothing.
func TestBadTables(t *testing.T) {
	const nodes, edges = "id,label,x\na,p,1\nb,q,2\nc,p,3\n", "src,dst\na,b\n"
	numbers := "id,label,x\n" + strings.Repeat("v%d,p,1\n", 8)
	for i := range 8 {
		numbers = strings.Replace(numbers, "%d", fmt.Sprint(i), 1)
	}
	var emails strings.Builder
	for i := range 200 {
		fmt.Fprintf(&emails, "%d,u%d@x,1\n", i, i)
	}
	for _, c := range []struct {
		name, nodes, edges string
		o                  TableOptions
		kind               fault.Kind
		want               []string
	}{
		{"empty", "", edges, TableOptions{}, fault.Data, []string{"nodes.csv: line 1", "is empty", "column names"}},
		{"heading alone", "id,label,x\n", edges, TableOptions{}, fault.Data,
			[]string{"nodes.csv", "no row after the header", "write a row"}},
		{"no id", "name,label,x\na,p,1\n", edges, TableOptions{}, fault.Data,
			[]string{`line 1: there is no column "id"; the columns are: name, label, x`, "--id"}},
		{"no heading", "a,p,1\nb,q,2\n", edges, TableOptions{}, fault.Data, []string{"line 1", "a, p, 1", "--id"}},
		{"no label", "id,x\na,1\n", edges, TableOptions{}, fault.Data, []string{`no column "label"`, "--label"}},
		{"no such split", nodes, edges, TableOptions{Features: []string{"y"}}, fault.Data, []string{`no column "y"`, "--features"}},
		{"two columns of one name", "id,label,x,x\na,p,1,2\n", edges, TableOptions{}, fault.Data,
			[]string{"line 1", `columns 3 and 4 are both called "x"`, "a unique name"}},
		{"a cell too many", "id,label,x\na,p,1\nb,q,2,3\n", edges, TableOptions{}, fault.Data,
			[]string{"line 3 has 4 cells, the header has 3", "quote"}},
		{"a cell too few", "id,label,x\na,p,1\nb\n", edges, TableOptions{}, fault.Data, []string{"line 3 has 1 cells, the header has 3"}},
		{"a quote inside", "id,label,x\na,p \"q\",1\n", edges, TableOptions{}, fault.Data,
			[]string{"line 2 column 2: there is a quote inside", "write a quote inside it twice"}},
		{"text behind quotes", "id,label,x\na,\"p\"q,1\n", edges, TableOptions{}, fault.Data,
			[]string{"line 2 column 2: there is a quote"}},
		{"quotes left open", "id,label,x\na,\"p,1\nb,q,2\n", edges, TableOptions{}, fault.Data,
			[]string{"line 2 has an unclosed quote", `a,\"p`, "close the quote"}},
		{"Latin-1", "id,label,x\na,K\xf6ln,1\n", edges, TableOptions{}, fault.Data, []string{"line 2 column 2", `K\xf6ln`, "iconv"}},
		{"UTF-16", "\xff\xfei\x00d\x00", edges, TableOptions{}, fault.Data, []string{"line 1", "UTF-16", "UTF-8"}},
		{"gzip", string(gz(nodes)), edges, TableOptions{}, fault.Data, []string{"compressed with gzip", ".gz"}},
		{"a spreadsheet", "PK\x03\x04rest", edges, TableOptions{}, fault.Data, []string{"spreadsheet", "save the table as CSV"}},
		{"an empty id", "id,label,x\na,p,1\n,q,2\n", edges, TableOptions{}, fault.Data,
			[]string{`line 3 column 1 (id): "" is not an id`, "a unique id"}},
		{"an id twice", "id,label,x\na,p,1\nb,p,1\n\na,q,2\n", edges, TableOptions{}, fault.Data,
			[]string{`line 5 column 1 (id): "a" occurs twice: line 2 has the same id`}},
		{"an id of two lines", "id,label,x\n\"a\nb\",p,1\n", edges, TableOptions{}, fault.Data,
			[]string{`line 2 column 1 (id): "a\nb"`, "ids without control characters"}},
		{"a quantity as label", "id,label,x\na,1,1\nb,2.5,2\n", edges, TableOptions{}, fault.Data,
			[]string{`line 3 column 2 (label): "2.5" is a quantity, not a class`, "whole numbers"}},
		{"a label below -1", "id,label,x\na,0,1\nb,-2,2\n", edges, TableOptions{}, fault.Data,
			[]string{`line 3 column 2 (label): "-2" is negative and not a class`, "number the classes from 0"}},
		{"no label at all", "id,label,x\na,,1\nb,,2\n", edges, TableOptions{}, fault.Data,
			[]string{"column 2 (label): no vertex has a label", "--label"}},
		{"a label each", "id,label,x\n" + emails.String(), "src,dst\n", TableOptions{}, fault.Data,
			[]string{"column 2 (label): it has 200 different labels in 200 rows", "--label"}},
		{"no set", "id,label,x,split\na,p,1,train\nb,q,2,holdout\n", edges, TableOptions{}, fault.Data,
			[]string{`line 3 column 4 (split): "holdout" is not a split`, "train, val or test"}},
		{"training without label", "id,label,x,split\na,p,1,train\nb,,2,test\n", edges, TableOptions{}, fault.Data,
			[]string{"line 3 column 2 (label)", "test set", "leave the split"}},
		{"a number is missing", "id,label,x\na,p,1\nb,q,\nc,p,3\n", edges, TableOptions{}, fault.Data,
			[]string{`line 3 column 3 (x): the cell has no value`, "--fill"}},
		{"a number is NA", "id,label,x\na,p,1\nb,q,NA\nc,p,\n", edges, TableOptions{}, fault.Data,
			[]string{`line 3 column 3 (x): the cell has no value`, "--fill"}},
		{"a word among numbers", strings.Replace(numbers, "v4,p,1", "v4,p,12k", 1), "src,dst\n", TableOptions{}, fault.Data,
			[]string{`line 6 column 3 (x): "12k" is not a float32 number`, "but 7 other cells", "--categories x"}},
		{"an infinite number", strings.Replace(numbers, "v4,p,1", "v4,p,1e39", 1), "src,dst\n", TableOptions{}, fault.Data,
			[]string{`line 6 column 3 (x): "1e39" is not a float32 number`}},
		{"commas in numbers", "id;label;x\na;p;1,5\nb;q;2,5\n", edges, TableOptions{}, fault.Data,
			[]string{`line 2 column 3 (x): "1,5" has a decimal comma`, "with a decimal point"}},
		{"no feature", "id,label\na,p\n", edges, TableOptions{}, fault.Data, []string{"no column becomes a feature", "column of numbers"}},
		{"texts alone", "id,label,x\na,p,m\nb,q,n\n", edges, TableOptions{}, fault.Data, []string{`no column becomes a feature; column x ` +
			`is dropped, because it is text with 2 different values, such as "m": import it with --words x`}},
		{"texts as a feature", "id,label,x\na,p,m\nb,q,n\n", edges, TableOptions{Features: []string{"x"}}, fault.Data,
			[]string{"column 3 (x) cannot be a feature", "--hash"}},
		{"no column of ends", nodes, "a,b\n", TableOptions{}, fault.Data,
			[]string{"edges.csv", `no column "src"; the columns are: a, b`, "--ends"}},
		{"an end that is nobody", nodes, "src,dst\na,b\nb,z\n", TableOptions{}, fault.Data,
			[]string{`edges.csv: line 3 column 2 (dst): "z" is not an id in the vertex table`, "--drop-unknown"}},
		{"an end as a float", "id,label,x\n1,p,1\n2,q,2\n", "src,dst\n1.0,2.0\n", TableOptions{}, fault.Data,
			[]string{`line 2 column 1 (src): "1.0" is not an id in the vertex table`, "write 1, as in the vertex table"}},
		{"a weight below 0", nodes, "src,dst,weight\na,b,1\nb,c,-0.5\n", TableOptions{}, fault.Data,
			[]string{`line 3 column 3 (weight): "-0.5" is a negative weight`, "--drop-weights"}},
		{"an infinite weight", nodes, "src,dst,weight\na,b,1\nb,c,inf\n", TableOptions{}, fault.Data,
			[]string{`line 3 column 3 (weight): "inf" is not a weight`, "write a number"}},
		{"no weight", nodes, "src,dst,weight\na,b,x\n", TableOptions{DropWeights: true}, fault.Data,
			[]string{`line 2 column 3 (weight): "x" is not a weight`, "write a number"}},
		{"no table of edges", nodes, "", TableOptions{Edges: "bonds.csv"}, fault.Missing, []string{"bonds.csv", "check the path"}},
		{"one end", nodes, edges, TableOptions{Ends: []string{"src"}}, fault.Usage, []string{"--ends names 1 columns"}},
		{"like what is no dataset", nodes, edges, TableOptions{Like: "nowhere"}, fault.Missing, []string{"nowhere"}},
		{"like and standardise", nodes, edges, TableOptions{Like: "nowhere", Standardise: true}, fault.Usage,
			[]string{"leave out --features"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			src, parent := files(t, map[string][]byte{"nodes.csv": []byte(c.nodes), "edges.csv": []byte(c.edges)}), t.TempDir()
			_, err := Import("csv", Options{Src: src, Dst: filepath.Join(parent, "out"), TableOptions: c.o})
			if err == nil || fault.KindOf(err) != c.kind {
				t.Fatalf("got %v of kind %d, want kind %d", err, fault.KindOf(err), c.kind)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if left, _ := os.ReadDir(parent); len(left) > 0 {
				t.Errorf("%s is left", left[0].Name())
			}
		})
	}
	t.Run("columns of what is no table", func(t *testing.T) {
		_, err := load(t, "raw", Options{Src: files(t, tinyRaw()), TableOptions: TableOptions{Standardise: true}})
		if fault.KindOf(err) != fault.Usage {
			t.Errorf("got %v", err)
		}
	})
}

// TestParquetCells: the cells of values of each type, and refused types.
func TestParquetCells(t *testing.T) {
	type row struct {
		Flag  bool     `parquet:"flag"`
		Small int32    `parquet:"small"`
		Big   uint64   `parquet:"big"`
		Half  float32  `parquet:"half"`
		Whole float64  `parquet:"whole"`
		Maybe *float64 `parquet:"maybe,optional"`
		Price int64    `parquet:"price,decimal(2:18)"`
		Text  string   `parquet:"text"`
		Index int64    `parquet:"__index_level_0__"`
	}
	dir, three := t.TempDir(), 3.0
	path := filepath.Join(dir, "x.parquet")
	if err := parquet.WriteFile(path,
		[]row{{true, -7, 1 << 63, 0.1, 0.1, &three, -12345, " Ö ", 0}, {false, 7, 1, 1e-9, math.NaN(), nil, 5, "", 1}}); err != nil {
		t.Fatal(err)
	}
	open := func() *tableFile { return openParquet(input{"test", path}) }
	f, err := caught(open)
	if err != nil || !slices.Equal(f.names, []string{"flag", "small", "big", "half", "whole", "maybe", "price", "text", ""}) {
		t.Fatalf("%v, columns %q", err, f.names)
	}
	got := ""
	f.each(func(at int64, cells [][]byte) {
		got += fmt.Sprintf("%d %s\n", at, bytes.Join(cells, []byte("|")))
	})
	if want := "1 true|-7|9223372036854775808|0.1|0.1|3|-12345e-2|Ö|0\n2 false|7|1|1e-09|NaN||5e-2||1\n"; got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if err := parquet.WriteFile(path, []struct {
		ID   string    `parquet:"id"`
		Many []float64 `parquet:"many"`
	}{{"a", []float64{1, 2}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := caught(open); fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), "column 2 (many): it holds lists") {
		t.Errorf("got %v", err)
	}
}

// FuzzParquet: any bytes give rows or a fault.
func FuzzParquet(f *testing.F) {
	for _, b := range tinyParquet() {
		f.Add(b)
	}
	path := filepath.Join(f.TempDir(), "x.parquet")
	f.Fuzz(func(t *testing.T, b []byte) {
		os.WriteFile(path, b, 0o600)
		_, err := caught(func() *tableFile {
			table := openParquet(input{"fuzz", path})
			table.each(func(_ int64, cells [][]byte) {
				if len(cells) != len(table.names) {
					t.Fatalf("%d cells for %d columns", len(cells), len(table.names))
				}
			})
			return table
		})
		if err != nil && fault.KindOf(err) != fault.Data {
			t.Fatalf("%v is no Data fault", err)
		}
	})
}

// FuzzTable: any bytes give a dataset or a fault, within memory bounded by their length.
func FuzzTable(f *testing.F) {
	for _, c := range tinyCSV() {
		f.Add(c, []byte("src,dst\na,b\n"))
	}
	f.Add([]byte(people), []byte("src,dst,weight\nann,bob,1\n\"cy\",di,0\n"))
	f.Add([]byte("id,label,x\n\"a\"\"b\",p,1\n"), []byte("src;dst\n;\n"))
	f.Add([]byte("id,label,when,day\na,p,2024-05-14T10:00Z,20240514\nb,q,2024-05-14 10:00:00.5+02,NaT\n"), []byte("src,dst\n"))
	f.Add([]byte("id\tlabel\t\n1\t1.0\t\"\n"), []byte("\"src\",\"dst\"\n1,1"))
	f.Add([]byte("id,label,x"+strings.Repeat(",", 20_000)+strings.Repeat("\n", 20_000)), []byte(nil))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, nodes, edges []byte) {
		os.WriteFile(filepath.Join(dir, "nodes.csv"), nodes, 0o600)
		os.WriteFile(filepath.Join(dir, "edges.csv"), edges, 0o600)
		k := newResources(input{"import csv", dir})
		defer k.release()
		var c *graph.Content
		var err error
		decodertest.Heap(t, int64(len(nodes)+len(edges)), func() {
			o := Options{Src: dir, Log: func(string, ...any) {}, TableOptions: TableOptions{Fill: "zero", DropWeights: true}}
			c, err = caught(func() *graph.Content { return csvFormat.readTables(k, o) })
		})
		if err != nil {
			if fault.KindOf(err) != fault.Data {
				t.Fatalf("%v is no Data fault", err)
			}
			return
		}
		if n := int(c.Vertices); len(c.Labels) != n || len(c.Split) != n || c.Features.Rows != n {
			t.Fatalf("arrays of other lengths than %d vertices", n)
		}
	})
}

// TestCodes: with --categories each code has a feature, with its leading zeros, and with or
// without the decimal point that pandas writes in columns with missing values.
func TestCodes(t *testing.T) {
	zip := func(cells ...string) string {
		text := "id,label,x,zip\n"
		for i, cell := range cells {
			text += fmt.Sprintf("%d,%d,1,%s\n", i, i%2, cell)
		}
		return text
	}
	first := filepath.Join(t.TempDir(), "first")
	src := files(t, map[string][]byte{"nodes.csv": []byte(zip("01234.0", "1234.0", "01234", "", "7.0")), "edges.csv": []byte("src,dst\n")})
	o := TableOptions{Categories: []string{"zip"}, Fill: "zero", Features: []string{"zip"}}
	if _, err := Import("csv", Options{Src: src, Dst: first, TableOptions: o}); err != nil {
		t.Fatal(err)
	}
	m, err := graph.ReadMeta(first)
	if err != nil || !slices.Equal(m.Table.Columns[0].Values, []string{"7", "01234", "01234.0", "1234"}) {
		t.Fatalf("%v, categories are %q", err, m.Table.Columns[0].Values)
	}
	got, err := importTable(t, zip("7", "1234", "01234"), "src,dst\n", Options{TableOptions: TableOptions{Like: first}})
	if err != nil || !slices.Equal(got.dense, []float32{1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0}) {
		t.Errorf("%v, features %v, log\n%s", err, got.dense, got.log)
	}
	got, err = importTable(t, zip("01234", "99999", "00001"), "src,dst\n", Options{})
	if err != nil || !strings.Contains(got.log,
		"warning: column=zip has numbers with leading zeros, such as 01234, which look like codes: use --categories zip") {
		t.Errorf("%v, log\n%s", err, got.log)
	}
}
