package pairs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/pairs"
	"siafu/internal/fault"
	"siafu/internal/host"
)

// write writes files of a folder, and gives their paths.
func write(t *testing.T, texts ...string) (paths []string) {
	dir := t.TempDir()
	for i, text := range texts {
		paths = append(paths, filepath.Join(dir, string(rune('a'+i))+".csv"))
		if err := os.WriteFile(paths[i], []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

// ring returns a dataset of the edges v–v+1 of a hundred vertices in a circle, both ways.
func ring(t *testing.T) string {
	const n = 100
	c := graph.Content{
		Name: "ring", Vertices: n, Symmetrise: true, Labels: make([]int32, n), Split: make([]uint8, n),
		Features: graph.Features{Rows: n, Dim: 1, Dense: make([]float32, n)},
	}
	var pairs graph.EdgePairs
	for v := range uint32(n) {
		pairs = append(pairs, v, (v+1)%n)
	}
	c.Edges = pairs
	dir := filepath.Join(t.TempDir(), "ring")
	if _, err := graph.Write(dir, c, false); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Edges and negatives of files are held as they stand, and leave the graph unless they are
// to stay; what a file does not give is drawn, and is no held pair.
func TestGiven(t *testing.T) {
	f := write(t, "src,dst\n1,0\n50,10\n", "src,dst\n2,3\n", "src,dst\n7,9\n7,9\n", "5,6,7\n8,9,10\n", "11,12,13\n")
	val := graph.Held{Edges: graph.Pairs{Src: []uint32{1, 50}, Dst: []uint32{0, 10}}}
	test := graph.Held{Edges: graph.Pairs{Src: []uint32{2}, Dst: []uint32{3}}}
	shared := graph.Pairs{Src: []uint32{7, 7}, Dst: []uint32{9, 9}}
	for name, c := range map[string]struct {
		o        pairs.HoldOutOptions
		ranked   int
		not      graph.Pairs
		val      []uint32
		edges    int
		negative int
	}{
		"edges alone":   {pairs.HoldOutOptions{Ranked: 4}, 4, graph.Pairs{}, nil, 2*100 - 4, 2},
		"a shared list": {pairs.HoldOutOptions{Ranked: 4, ValNegatives: f[2], TestNegatives: f[2]}, 0, shared, nil, 2*100 - 4, 2},
		"lists of each": {pairs.HoldOutOptions{Ranked: 4, ValCandidates: f[3], TestCandidates: f[4], Negatives: 3}, 3, graph.Pairs{},
			[]uint32{5, 6, 7, 8, 9, 10}, 2*100 - 4, 3},
		"kept": {pairs.HoldOutOptions{KeepHeld: true}, 0, graph.Pairs{}, nil, 2 * 100, 2},
	} {
		dst := filepath.Join(t.TempDir(), "links")
		c.o.Split, c.o.Val, c.o.Test = "85/5/10", f[0], f[1]
		if _, err := pairs.HoldOut(ring(t), dst, c.o, false); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		h, done, err := graph.OpenHeldOut(dst)
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		if h.Ranked != c.ranked || !reflect.DeepEqual(h.Val.Edges, val.Edges) || !reflect.DeepEqual(h.Test.Edges, test.Edges) {
			t.Errorf("%s: %+v", name, h)
		}
		if c.not.Len() > 0 && (!reflect.DeepEqual(h.Val.Not, c.not) || !reflect.DeepEqual(h.Test.Not, c.not)) ||
			h.Val.Not.Len() != c.negative {
			t.Errorf("%s: edges are told from %v and %v", name, h.Val.Not, h.Test.Not)
		}
		if c.val != nil && !reflect.DeepEqual(h.Val.Each, c.val) || len(h.Val.Each) != 2*c.ranked {
			t.Errorf("%s: edges are ranked among %v", name, h.Val.Each)
		}
		if got := len(open(t, dst).In.Cols); got != c.edges {
			t.Errorf("%s: %d edges are left, want %d", name, got, c.edges)
		}
	}
}

// What does not go together is refused with a remedy.
func TestGivenRefused(t *testing.T) {
	f := write(t, "src,dst\n1,0\n", "src,dst\n2,3\n", "5,6\n", "5\n")
	for _, c := range []struct {
		o    pairs.HoldOutOptions
		want string
	}{
		{pairs.HoldOutOptions{Val: f[0]}, "give both"},
		{pairs.HoldOutOptions{ValNegatives: f[0]}, "give the edges with --val and --test"},
		{pairs.HoldOutOptions{KeepHeld: true}, "give the edges with --val and --test"},
		{pairs.HoldOutOptions{Val: f[0], Test: f[1], ValCandidates: f[2]}, "the same number for both"},
		{pairs.HoldOutOptions{Val: f[0], Test: f[1], ValCandidates: f[2], TestCandidates: f[3]}, "the same number for both"},
		{pairs.HoldOutOptions{Val: f[0], Test: f[2]}, "src,dst"},
	} {
		c.o.Split = "85/5/10"
		if _, err := pairs.HoldOut(ring(t), filepath.Join(t.TempDir(), "links"), c.o, false); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}

// TestGivenTwice: pairs of the user's files that are no links, or count twice, are counted in a
// warning.
func TestGivenTwice(t *testing.T) {
	f := write(t, "src,dst\n1,0\n50,10\n", "src,dst\n2,3\n", "src,dst\n1,0\n1,0\n0,1\n4,4\n", "src,dst\n0,1\n2,3\n")
	for _, c := range []struct{ val, test, want string }{
		{f[0], f[1], ""},
		{f[2], f[1], "pairs (v, v)=1, repeated=1, reversed=1, in both files=0"},
		{f[0], f[3], "pairs (v, v)=0, repeated=0, reversed=0, in both files=1"},
	} {
		var log strings.Builder
		o := pairs.HoldOutOptions{Split: "85/5/10", Val: c.val, Test: c.test,
			Log: func(format string, args ...any) { fmt.Fprintf(&log, format, args...) }}
		if _, err := pairs.HoldOut(ring(t), filepath.Join(t.TempDir(), "links"), o, false); err != nil {
			t.Fatal(err)
		}
		if (log.Len() > 0) != (c.want != "") || !strings.Contains(log.String(), c.want) {
			t.Errorf("got %q, want %q", log.String(), c.want)
		}
	}
}

// TestMemoryFirst: candidates that do not fit into memory are refused before they are sampled.
func TestMemoryFirst(t *testing.T) {
	defer host.LimitMemory(1 << 20)()
	_, err := pairs.HoldOut(ring(t), filepath.Join(t.TempDir(), "links"), pairs.HoldOutOptions{Split: "85/5/10", Ranked: 100_000}, false)
	if fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "set a smaller --ranked") {
		t.Errorf("got %v", err)
	}
}
