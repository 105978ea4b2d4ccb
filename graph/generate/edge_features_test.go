package generate

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"siafu/graph"
)

// Features of generated edges are the same both ways and in every run, of variance 1, and tell
// edges within classes from others; without them nothing of the graph changes.
func TestGeneratedEdgeFeatures(t *testing.T) {
	made := func(dim int, noise float64) *graph.Dataset {
		dir := filepath.Join(t.TempDir(), "g")
		o := Options{Vertices: 2000, Edges: 20000, Features: 4, EdgeFeatures: dim, Noise: noise, Seed: 3}
		if _, err := Write(dir, o, false); err != nil {
			t.Fatal(err)
		}
		d, err := graph.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	}
	const dim = 16
	d, none := made(dim, 1), made(0, 1)
	if d.Meta.EdgeDim != dim || d.Meta.Directed || !slices.Equal(d.In.Cols, none.In.Cols) ||
		!slices.Equal(d.Features.Dense, none.Features.Dense) {
		t.Errorf("%+v", d.Meta)
	}
	if !slices.Equal(d.EdgeFeatures, made(dim, 1).EdgeFeatures) {
		t.Error("another run has made other features")
	}
	squares := 0.0
	for _, f := range d.EdgeFeatures {
		squares += float64(f) * float64(f)
	}
	// The mean square of 160,000 numbers is within 0.1 of 1: that of 32 centres is most of it
	// less than 1/9 of what is noise.
	if mean := squares / float64(len(d.EdgeFeatures)); math.Abs(mean-1) > 0.1 {
		t.Errorf("a mean square of %v", mean)
	}
	clean, seen := made(dim, -1), map[bool][]float32{} // all edges of a kind have the same features
	for v := range clean.In.Rows() {
		for i := clean.In.Offsets[v]; i < clean.In.Offsets[v+1]; i++ {
			within, f := clean.Labels[v] == clean.Labels[clean.In.Cols[i]], clean.EdgeFeatures[i*dim:][:dim]
			if before := seen[within]; before != nil && !slices.Equal(f, before) {
				t.Fatalf("edge %d has other features than those of its kind", i)
			}
			seen[within] = f
		}
	}
	if len(seen) != 2 || slices.Equal(seen[false], seen[true]) {
		t.Errorf("edges of %d kinds, alike", len(seen))
	}
}
