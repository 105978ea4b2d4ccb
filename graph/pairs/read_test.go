package pairs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
)

// namesOf returns the names of three vertices.
func namesOf(ids *graph.IDs) *Names {
	return NewNames(&graph.Dataset{IDs: ids, Meta: &graph.Meta{Vertices: 3}})
}

// words are ids of three vertices.
func words() *Names {
	return namesOf(&graph.IDs{Offsets: []int64{0, 1, 2, 4}, Text: []byte("ab17")})
}

func file(t *testing.T, name, text string) string {
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Text names pairs by columns, in any order, with ids of words, of numbers, or of none.
func TestText(t *testing.T) {
	want := graph.Pairs{Src: []uint32{2, 0}, Dst: []uint32{0, 1}}
	for name, c := range map[string]struct {
		names      *Names
		file, text string
	}{
		"words":   {words(), "p.csv", "dst,year,src\na,1999,17\n b,2000,a\n"},
		"tabs":    {words(), "p.tsv", "src\tdst\n17\ta\na\tb\n"},
		"numbers": {namesOf(&graph.IDs{Ints: []int64{30, 20, 10}}), "p.txt", "src,dst\n10,30\n30,20\n"},
		"guarded": {namesOf(&graph.IDs{Offsets: []int64{0, 2, 3, 5}, Text: []byte("=ab@c")}),
			"p.csv", "src,dst\n'@c,'=a\n=a,b\n"},
		"none": {namesOf(nil), "p.csv", "src,dst\n2,0\n0,1\n"},
	} {
		s, err := Read("test", file(t, c.file, c.text), c.names)
		if err != nil || !reflect.DeepEqual(s, &Split{Held: graph.Held{Edges: want}}) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	each, ranked, err := readEach("test", file(t, "each.csv", "a,17\nb,b\n"), words(), 2)
	if err != nil || ranked != 2 || !reflect.DeepEqual(each, []uint32{0, 2, 1, 1}) {
		t.Errorf("%v of %d, %v", each, ranked, err)
	}
}

// What is no pair of vertices is a Data fault that says where, and what to do.
func TestBadText(t *testing.T) {
	for _, c := range [][3]string{
		{"", "no first line", "src,dst"},
		{"a,b\n", `["a" "b"]`, "src,dst"},
		{"src,dst\n", "no pairs", "at least one pair"},
		{"src,dst\na,b\n\na,c\n", `line 4 names "c"`, "give ids of the dataset"},
		{"src,dst\na\n", "line 2", "two ids per line"},
	} {
		_, err := Read("test", file(t, "p.csv", c[0]), words())
		says(t, err, "p.csv", c[1], c[2])
	}
	for _, c := range [][3]string{
		{"a,b\na\n", "line 2", "the same number of ids"},
		{"a,b\n", "1 rows for 2 edges", "a row for each edge"},
		{"a,b\na,0\n", `line 2 names "0"`, "give ids of the dataset"},
	} {
		_, _, err := readEach("test", file(t, "e.csv", c[0]), words(), 2)
		says(t, err, "e.csv", c[1], c[2])
	}
	if _, err := Read("test", "nowhere.csv", words()); fault.KindOf(err) != fault.Missing {
		t.Errorf("a file that is not there is %v", err)
	}
}

// says fails unless err is a Data fault with these words.
func says(t *testing.T, err error, words ...string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Data {
		t.Errorf("%v is no Data fault", err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error()+f.Remedy, w) {
			t.Errorf("it says %q, not %q", err, w)
		}
	}
}

const writer = `
import sys
try:
    import numpy as np, torch
except ImportError:
    sys.exit(3)
d = sys.argv[1] + "/"
edge, neg = np.array([[10, 20], [30, 10], [30, 30]]), np.array([[20, 20]])
each = np.array([[20, 30], [10, 10], [20, 10]], dtype=np.int32)
np.save(d + "rows.npy", edge)
np.save(d + "columns.npy", np.ascontiguousarray(edge.T.astype(np.float64)))
np.save(d + "each.npy", each)
np.save(d + "words.npy", edge.astype(str))
np.savez(d + "both.npz", edge=edge, edge_neg=neg)
np.savez_compressed(d + "ranked.npz", source_node=edge[:, 0], target_node=edge[:, 1], target_node_neg=each)
torch.save({"edge": edge, "edge_neg": neg, "year": edge}, d + "both.pt")
torch.save({"source_node": torch.tensor(edge[:, 0]), "target_node": torch.tensor(edge[:, 1]), "target_node_neg": torch.tensor(each)}, d + "ranked.pt")
torch.save({"train": {"edge": neg}, "valid": {"edge": edge, "edge_neg": neg}, "test": {"edge": torch.tensor(edge)}}, d + "parts.pt")
np.save(d + "shape.npy", edge[:, :1])
np.save(d + "value.npy", edge + 1)
np.save(d + "half.npy", edge + 0.5)
np.savez(d + "names.npz", edges=edge)
np.savez(d + "ends.npz", source_node=edge[:, 0], target_node=edge[:2, 1])
np.savez(d + "short.npz", source_node=edge[:, 0], target_node=edge[:, 1], target_node_neg=each[:2])
torch.save(torch.tensor(edge), d + "tensor.pt")
torch.save({"edge": "x"}, d + "word.pt")
`

// Arrays that NumPy and PyTorch have written, under the names of the Open Graph Benchmark,
// are read as they were; what is none is refused.
func TestArrays(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("/usr/bin/python3", "-c", writer, dir).CombinedOutput(); err != nil {
		var ended *exec.ExitError
		if !errors.As(err, &ended) || ended.ExitCode() == 3 {
			t.Skip("there is no PyTorch")
		}
		t.Fatalf("%v\n%s", err, out)
	}
	names := namesOf(&graph.IDs{Ints: []int64{10, 20, 30}})
	edges := graph.Pairs{Src: []uint32{0, 2, 2}, Dst: []uint32{1, 0, 2}}
	plain := Split{Held: graph.Held{Edges: edges}}
	both := Split{Held: graph.Held{Edges: edges, Not: graph.Pairs{Src: []uint32{1}, Dst: []uint32{1}}}}
	ranked := Split{Held: graph.Held{Edges: edges, Each: []uint32{1, 2, 0, 0, 1, 0}}, Ranked: 2}
	for name, want := range map[string]Split{
		"rows.npy": plain, "columns.npy": plain, "words.npy": plain, "both.npz": both, "both.pt": both,
		"ranked.npz": ranked, "ranked.pt": ranked,
	} {
		if s, err := Read("test", filepath.Join(dir, name), names); err != nil || !reflect.DeepEqual(*s, want) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	parts := filepath.Join(dir, "parts.pt")
	for part, want := range map[string]Split{"train": {Held: graph.Held{Edges: both.Not}}, "valid": both, "test": plain} {
		if s, err := readPart("test", parts, part, names); err != nil || !reflect.DeepEqual(*s, want) {
			t.Errorf("%s of parts.pt: %+v, %v", part, s, err)
		}
	}
	if s, err := readPart("test", filepath.Join(dir, "both.pt"), "valid", names); err != nil || !reflect.DeepEqual(*s, both) {
		t.Errorf("a file of one split: %+v, %v", s, err)
	}
	for _, part := range []string{"", "other"} {
		_, err := readPart("test", parts, part, names)
		says(t, err, "parts.pt", "neither edge")
	}
	each, n, err := readEach("test", filepath.Join(dir, "each.npy"), names, 3)
	if err != nil || n != 2 || !reflect.DeepEqual(each, ranked.Each) {
		t.Errorf("%v of %d, %v", each, n, err)
	}
	for name, want := range map[string]string{
		"shape.npy": "[3 1]", "value.npy": `element 0 of array names "11"`, "half.npy": "not a whole number", "names.npz": "neither edge",
		"ends.npz": "3 elements, target_node 2", "short.npz": "[2 2], for 3 edges", "tensor.pt": "a dict", "word.pt": "edge",
	} {
		_, err := Read("test", filepath.Join(dir, name), names)
		says(t, err, name, want)
	}
}
