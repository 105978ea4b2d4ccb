package importers

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/pickle"
)

// TestHeterograph: the graph of tinyRelational in each of DGL's edge formats.
func TestHeterograph(t *testing.T) {
	for _, name := range []string{"hetero.dgl", "heterocsr.dgl", "heterocsc.dgl"} {
		d, log := written(t, "auto", Options{Src: filepath.Join("testdata", name), TableOptions: TableOptions{DropEdgeFeatures: true}})
		checkTiny(t, d, false)
		if !strings.Contains(log, name+`[author] left_out=ndata["year"]`) || strings.Contains(log, "warning") ||
			(name == "heterocsr.dgl") != strings.Contains(log, `[author,writes,paper][edata["feat"]] is left out`) {
			t.Errorf("log:\n%s", log)
		}
	}
}

func TestBadHeterograph(t *testing.T) {
	tiny := testFile("hetero.dgl")
	swap := func(from, to []byte) []byte {
		if !bytes.Contains(tiny, from) || len(from) != len(to) {
			t.Fatalf("%q is not there", from)
		}
		return bytes.Replace(tiny, from, to, 1)
	}
	text := func(s string) []byte { return append(little(uint64(len(s))), s...) }
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"features of edges": {testFile("heterocsr.dgl"), "leave them out with --drop-edge-features"},
		"name": {swap(text("author"), text("auth:r")),
			"invalid name"},
		"an edge to nowhere": {swap(little([]int64{0, 1, 3, 2}), little([]int64{0, 1, 4, 2})),
			"destination 4 is outside the vertices 0..3"},
		"a source": {swap(little([]int64{0, 1, 2, 0}), little([]int64{0, 1, 3, 0})),
			"source 3 is outside the vertices 0..2"},
		"vertices": {swap(little(uint64(2), int64(3), int64(4)), little(uint64(2), int64(5), int64(4))),
			"a matrix of 3 x 4 for 5 x 4 vertices"},
		"numbers": {swap(little(uint64(2), int64(3), int64(4)), little(uint64(3), int64(3), int64(4))),
			"3 vertex counts, expected 2"},
		"types": {swap(little([]int64{0, 1, 2}), little([]int64{0, 1, 9})),
			"2 rows of edges have 3 offsets"},
	} {
		path := filepath.Join(t.TempDir(), "x.dgl")
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := load(t, "dgl", Options{Src: path})
		if fault.KindOf(err) != fault.Data || !strings.Contains(fmt.Sprint(err), path) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestMutated: a damaged file is read, or refused with a fault of kind Data.
func TestMutated(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for i := range 4000 {
		name := []string{"hetero.dgl", "heterocsr.dgl", "heterocsc.dgl", "hetero.pt", "heterodict.pt"}[i%5]
		b, first := bytes.Clone(testFile(name)), 4096
		if strings.HasSuffix(name, ".pt") {
			first = 64
		}
		for range 1 + r.IntN(3) {
			b[first+r.IntN(len(b)-first)] = byte(r.IntN(256))
		}
		k := newResources(input{"import", name})
		_, err := caught(func() *graph.Content {
			o := Options{Src: name, Log: func(string, ...any) {}, TableOptions: TableOptions{DropEdgeFeatures: true}}
			if first == 64 {
				return torchGraph(k, o, must(pickle.NewTorch(b, name)))
			}
			return dglGraph(k, o, must(newDGLFile(b, name)))
		})
		k.release()
		if kind := fault.KindOf(err); err != nil && kind != fault.Data && kind != fault.Config {
			t.Fatalf("%s, mutation %d: %v", name, i, err)
		}
	}
}
