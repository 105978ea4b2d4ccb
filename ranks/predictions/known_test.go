package predictions

import (
	"path/filepath"
	"slices"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
)

// dataset returns a folder of vertices with these ids, nil for 0..n-1.
func dataset(t *testing.T, n int, ids *graph.IDs) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	c := graph.Content{Name: "d", Vertices: int64(n), Edges: graph.EdgePairs{},
		Features: graph.Features{Rows: n, Dim: 1, Dense: make([]float32, n)},
		Labels:   make([]int32, n), Split: make([]uint8, n), IDs: ids}
	if _, err := graph.Write(dir, c, false); err != nil {
		t.Fatal(err)
	}
	return dir
}

func words(list ...string) *graph.IDs {
	ids := &graph.IDs{Offsets: []int64{0}}
	for _, w := range list {
		ids.Text = append(ids.Text, w...)
		ids.Offsets = append(ids.Offsets, int64(len(ids.Text)))
	}
	return ids
}

func TestNewVertices(t *testing.T) {
	for _, c := range []struct {
		name    string
		n       int
		trained *graph.IDs
		m       int
		of      *graph.IDs
		want    []uint32
	}{
		{"words", 3, words("ann", "bob", "cy"), 4, words("dan", "bob", "", "ann"), []uint32{0, 2}},
		{"none of them", 1, words("ann"), 1, words("ann"), nil},
		{"numbers of rows", 3, nil, 5, nil, []uint32{3, 4}},
		{"numbers", 3, nil, 4, &graph.IDs{Ints: []int64{-1, 2, 0, 3}}, []uint32{0, 3}},
		{"rows among numbers", 2, &graph.IDs{Ints: []int64{7, 1}}, 3, nil, []uint32{0, 2}},
		{"words among rows", 3, nil, 3, words("01", "1", "x"), []uint32{0, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := t.TempDir()
			if err := WriteKnown(run, dataset(t, c.n, c.trained)); err != nil {
				t.Fatal(err)
			}
			if got, err := NewVertices(run, dataset(t, c.m, c.of)); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%v, %v, want %v", got, err, c.want)
			}
		})
	}
	if _, err := NewVertices(t.TempDir(), dataset(t, 1, nil)); fault.KindOf(err) != fault.Missing {
		t.Errorf("a run that does not say: %v", err)
	}
}
