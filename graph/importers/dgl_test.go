package importers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/testkit/decodertest"
)

// TestDGL: the tiny graph in each of DGL's edge formats is the same dataset, and weights
// belong to edges by id.
func TestDGL(t *testing.T) {
	want := mustLoad(t, "raw", Options{Src: files(t, tinyRaw())})
	second := 1
	for _, c := range []struct {
		file, left string
		graph      *int
		drop       bool
	}{
		{"coo.dgl", "", nil, false}, {"csc.dgl", "", nil, false}, {"several.dgl", "", &second, false},
		{"csr.dgl", `left_out=edata["kind"],labels["glabel"]`, nil, true},
	} {
		t.Run(c.file, func(t *testing.T) {
			o := Options{Src: filepath.Join("testdata", c.file), Graph: c.graph}
			o.DropWeights = c.drop
			got := mustLoad(t, "auto", o)
			same(t, got, want)
			if !strings.Contains(got.log, "format=dgl") || !strings.Contains(got.log, c.left) ||
				c.left == "" && strings.Contains(got.log, "left_out") {
				t.Errorf("log:\n%s", got.log)
			}
		})
	}
	got := mustLoad(t, "dgl", Options{Src: filepath.Join("testdata", "csr.dgl")})
	source, ok := got.Edges.(graph.WeightedSource)
	if !ok {
		t.Fatalf("edges are %T", got.Edges)
	}
	var found []string
	if err := source.EachWeight(func(src, dst uint32, w float32) error {
		found = append(found, fmt.Sprint(src, dst, w))
		return nil
	}); err != nil || strings.Join(found, ", ") != "3 0 4, 1 2 2, 0 1 0.5" {
		t.Errorf("%v, edges %q", err, found)
	}
}

// TestBadDGL: errors name the file, the position and a remedy.
func TestBadDGL(t *testing.T) {
	tiny, weighted := testFile("coo.dgl"), testFile("csr.dgl")
	swap := func(b, from, to []byte, which int) []byte {
		for at, n := 0, 0; ; n++ {
			i := bytes.Index(b[at:], from)
			if i < 0 {
				t.Fatalf("%x is not there", from)
			}
			if at += i; n == which {
				return append(append(bytes.Clone(b[:at]), to...), b[at+len(to):]...)
			}
			at += len(from)
		}
	}
	array := little(uint64(0xDD5E40F096B4A13F))
	third := -1
	for _, c := range []struct {
		name  string
		file  []byte
		graph *int
		kind  fault.Kind
		want  []string
	}{
		{"empty", nil, nil, fault.Data, []string{"byte 0: 8 bytes expected, 0 left"}},
		{"text", []byte("import dgl"), nil, fault.Data, []string{"a file of dgl.save_graphs begins with"}},
		{"head", tiny[:100], nil, fault.Data, []string{"it has 100 bytes but claims 1 graphs", "fetch the file again"}},
		{"truncated", tiny[:len(tiny)-5], nil, fault.Data,
			[]string{"does not end with the offsets of its 1 graphs", "fetch the file again"}},
		{"before 0.5", swap(tiny, little(uint64(2)), little(uint64(1)), 0), nil, fault.Data,
			[]string{"version 1, of DGL before 0.5", "with DGL 0.5 or later"}},
		{"version 3", swap(tiny, little(uint64(2)), little(uint64(3)), 0), nil, fault.Data, []string{"version 3 and type 2"}},
		{"place", swap(tiny, tiny[len(tiny)-16:len(tiny)-8], little(uint64(1<<40)), 1), nil, fault.Data,
			[]string{"graph 0 begins at byte 1099511627776"}},
		{"several", testFile("several.dgl"), nil, fault.Data, []string{"it holds 2 graphs", "--graph, from 0 to 1"}},
		{"no such graph", tiny, &third, fault.Usage, []string{"no graph -1, the file has 1"}},
		{"elements", swap(tiny, []byte{2, 32, 1, 0}, []byte{4, 16, 1, 0}, 0), nil, fault.Data,
			[]string{`tensor "feat" has elements of kind 4 with 16 bits`, "float()"}},
		{"complex", swap(tiny, []byte{2, 32, 1, 0}, []byte{5, 64, 1, 0}, 0), nil, fault.Data,
			[]string{`tensor "feat" has elements of kind 5 with 64 bits`}},
		{"array", swap(tiny, array, make([]byte, 8), 4), nil, fault.Data, []string{"begins with 0x0, expected 0xdd5e40f096b4a13f"}},
		{"dimension", swap(tiny, little(int64(4), int64(2), int64(32)), little(int64(4), int64(1<<50)), 0), nil, fault.Data,
			[]string{`tensor "feat" has a dimension of 1125899906842624`}},
		{"bytes", swap(tiny, little(int64(4), int64(2), int64(32)), little(int64(4), int64(2), int64(31)), 0), nil, fault.Data,
			[]string{"the shape [4 2] and 31 bytes"}},
		{"an edge to nowhere", swap(tiny, little([]int64{1, 2, 0, 0}), little([]int64{1, 2, 4, 0}), 0), nil, fault.Data,
			[]string{"edge 2", "4", "0..3"}},
		{"negative", swap(tiny, little([]int64{1, 2, 0, 0}), little([]int64{1, -2}), 0), nil, fault.Data, []string{"[columns]", "-2"}},
		{"ids of edges", swap(weighted, little([]int32{3, 2, 1, 0}), little([]int32{3, 2, 3}), 0), nil, fault.Data,
			[]string{"edge 2 has the id 3, which is not unique among 4 edges"}},
		{"rows", swap(weighted, little([]int32{0, 1, 2, 3, 4}), little([]int32{0, 1, 9}), 0), nil, fault.Data,
			[]string{"row 1 of edges goes from 1 to 9"}},
		{"format", swap(tiny, little(uint64(1|1<<32)), little(uint64(8|1<<32)), 0), nil, fault.Data,
			[]string{"edges are in the format 0x8, supported are coo, csr and csc"}},
		{"no features", swap(tiny, []byte("feat"), []byte("fear"), 0), nil, fault.Data,
			[]string{`there is no "feat" in ndata: `, `ndata["fear"]`, `g.ndata["feat"]`}},
		{"rows of features", swap(tiny, little(int64(4), int64(2), int64(32)), little(int64(2), int64(4)), 0), nil, fault.Data,
			[]string{"[vertices]: it is [4], but x has 2 rows"}},
		{"weights", swap(weighted, little(float32(4), float32(0)), little(float32(-4)), 0), nil, fault.Data,
			[]string{`edata["weight"]`, "the weight of edge 0 is -4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.dgl")
			if err := os.WriteFile(path, c.file, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := load(t, "dgl", Options{Src: path, Graph: c.graph})
			if fault.KindOf(err) != c.kind || !strings.Contains(fmt.Sprint(err), path) {
				t.Fatalf("got %v, want a fault of kind %d about %s", err, c.kind, path)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
	if _, err := load(t, "npz", Options{Src: "x.npz", Graph: &third}); fault.KindOf(err) != fault.Usage ||
		!strings.Contains(fmt.Sprint(err), "leave --graph out") {
		t.Errorf("--graph of an npz: %v", err)
	}
}

func FuzzDGL(f *testing.F) {
	for _, name := range []string{"coo.dgl", "csr.dgl", "csc.dgl", "hetero.dgl", "heterocsr.dgl"} {
		f.Add(testFile(name)[4096:])
	}
	head := testFile("coo.dgl")[:4096]
	f.Fuzz(func(t *testing.T, rest []byte) {
		b := append(bytes.Clone(head), rest...)
		decodertest.Heap(t, int64(len(b)), func() {
			file, err := newDGLFile(b, "x.dgl")
			if err == nil {
				k := newResources(input{"import dgl", "x.dgl"})
				defer k.release()
				_, err = caught(func() *graph.Content { return dglGraph(k, Options{Src: "x.dgl", Log: func(string, ...any) {}}, file) })
			}
			if err != nil && fault.KindOf(err) != fault.Data {
				t.Errorf("%v is of kind %d, want %d", err, fault.KindOf(err), fault.Data)
			}
		})
	})
}
