package importers

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestTablesByOtherNames: where a folder has no nodes and edges, the error lists its tables
// and the flags that name them; --nodes also chooses the format.
func TestTablesByOtherNames(t *testing.T) {
	two := map[string][]byte{"people.csv": []byte("id,label,x\na,p,1\nb,q,2\n"),
		"follows.csv.gz": gz("src,dst\na,b\n"), "notes.md": []byte("x")}
	got := mustLoad(t, "auto", Options{Src: files(t, two), TableOptions: TableOptions{Nodes: "people.csv", Edges: "follows.csv.gz"}})
	if got.Vertices != 2 || len(got.edges) != 1 || !strings.Contains(got.log, "format=csv\n") {
		t.Errorf("%d vertices, edges %v, log %s", got.Vertices, got.edges, got.log)
	}
	for _, c := range []struct {
		from  string
		files map[string][]byte
		src   string
		want  string
	}{
		{"auto", two, "",
			"the format is not recognised; name the tables with --nodes FILE --edges FILE, out of follows.csv.gz, people.csv"},
		{"auto", two, "people.csv", "give its folder as SRC, and name the tables with --nodes people.csv --edges FILE"},
		{"csv", two, "", `it has no file nodes with an extension in [".csv" ".csv.gz" ".csv.zst" ".tsv" ".tsv.gz" ".tsv.zst"]; name the ` +
			`tables with --nodes FILE --edges FILE, out of follows.csv.gz, people.csv`},
		{"csv", two, "people.csv", "give its folder as SRC"},
		{"parquet", two, "", `it has no file nodes with an extension in [".parquet"]; name the tables`},
		{"auto", map[string][]byte{"notes.md": nil}, "", "name it with --from"},
		{"auto", map[string][]byte{"nodes.csv.bz2": []byte("BZh"), "edges.csv": nil}, "",
			"nodes.csv.bz2: .bz2 files are not supported; unpack or convert it"},
		{"csv", map[string][]byte{"nodes.csv.bz2": []byte("BZh")}, "", "nodes.csv.bz2: .bz2 files are not supported"},
		{"csv", map[string][]byte{"nodes.csv": two["people.csv"], "edges.csv.xz": nil}, "", "edges.csv.xz: .xz files are not supported"},
		{"csv", map[string][]byte{"nodes.csv": []byte("BZh91AY")}, "", "compressed with bzip2, which is not supported"},
	} {
		_, err := load(t, c.from, Options{Src: filepath.Join(files(t, c.files), c.src)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.from, err, c.want)
		}
	}
}

// TestUnnamedColumns: an unnamed column of a table is reported by its number.
func TestUnnamedColumns(t *testing.T) {
	got, err := importTable(t, ",id,label,x\n0,a,p,1\n1,b,q,2\n", ",src,dst,note\n0,a,b,n\n", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"dropped column=column 1: it has no name", "not used: columns column 1 without a name, note;"} {
		if !strings.Contains(got.log, want) {
			t.Errorf("log lacks %q:\n%s", want, got.log)
		}
	}
	_, err = importTable(t, ",name,label,x\n0,a,p,1\n", "src,dst\n", Options{})
	if err == nil || !strings.Contains(err.Error(), "the columns are: column 1, name, label, x") {
		t.Errorf("got %v", err)
	}
}

// TestPackedTable: a table may be packed by zstd, and one that unpacks to far more
// than its size is refused.
func TestPackedTable(t *testing.T) {
	pack := func(parts ...string) []byte {
		var b bytes.Buffer
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range parts {
			z.Write([]byte(text))
		}
		z.Close()
		return b.Bytes()
	}
	f := map[string][]byte{"nodes.csv.zst": pack(people), "edges.csv": []byte("src,dst\n")}
	if got := mustLoad(t, "auto", Options{Src: files(t, f), TableOptions: TableOptions{Fill: "zero"}}); got.Vertices != 6 {
		t.Errorf("%d vertices", got.Vertices)
	}
	f["edges.csv.zst"] = pack("src,dst\n", strings.Repeat(strings.Repeat("\r", 1<<20)+"\n", 80))
	delete(f, "edges.csv")
	err := tryImport(t, "csv", "", with(f, "nodes.csv.zst", pack("id,label,x\na,p,1\n")))
	if err == nil || !strings.Contains(err.Error(), "edges.csv.zst") || !strings.Contains(err.Error(), "unpack it yourself") {
		t.Errorf("got %v", err)
	}
}
