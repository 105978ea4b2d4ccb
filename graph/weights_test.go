package graph

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// weighed are edges with a weight each.
type weighed struct {
	EdgePairs
	weights []float32
}

// EachWeight implements WeightedSource.
func (e weighed) EachWeight(yield func(src, dst uint32, weight float32) error) error {
	i := -1
	return e.Each(func(src, dst uint32) error {
		i++
		return yield(src, dst, e.weights[i])
	})
}

// Weights lie beside the edges that they belong to, whatever the windows, added up where an
// edge comes twice; a graph whose edges go both ways with other weights is directed.
func TestWeights(t *testing.T) {
	const n = 40
	rng := rand.New(rand.NewPCG(1, 2))
	var e weighed
	for range 500 { // many twice
		e.EdgePairs = append(e.EdgePairs, rng.Uint32N(n), rng.Uint32N(n))
		e.weights = append(e.weights, rng.Float32()+0.1)
	}
	for _, symmetrise := range []bool{false, true} {
		for _, memory := range []int64{0, 160, 1 << 10} {
			c := Content{Name: "w", Vertices: n, Edges: e, EdgeMemory: memory, Symmetrise: symmetrise,
				Features: Features{Rows: n, Dim: 1, Dense: make([]float32, n)}, Labels: make([]int32, n), Split: make([]uint8, n)}
			var want [n][n]float64
			for i := 0; i < len(e.EdgePairs); i += 2 {
				if s, d := e.EdgePairs[i], e.EdgePairs[i+1]; s != d {
					want[d][s] += float64(e.weights[i/2])
					if symmetrise {
						want[s][d] += float64(e.weights[i/2])
					}
				}
			}
			dir := filepath.Join(t.TempDir(), "w")
			r, err := Write(dir, c, false)
			if err != nil {
				t.Fatal(err)
			}
			d, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if d.Meta.Format != LaterFormat || !r.Weighted || r.Directed == symmetrise || r.Uneven {
				t.Errorf("report %+v, format %d", r, d.Meta.Format)
			}
			edges := 0
			for v := range want {
				for u, w := range want[v] {
					if w == 0 {
						continue
					}
					edges++
					at, ok := slices.BinarySearch(d.In.Row(v), uint32(u))
					if got := float64(d.Weights[int(d.In.Offsets[v])+at]); !ok || math.Abs(got-w) > 1e-6 { // a rounding of float32
						t.Fatalf("edge %d → %d weighs %v, want %v", u, v, got, w)
					}
				}
			}
			if len(d.Weights) != edges {
				t.Errorf("%d weights of %d edges", len(d.Weights), edges)
			}
			d.Close()
		}
	}
}

// A graph is directed for its weights alone, a weight that is none is a fault, and so is a
// file of weights that is damaged, absent or another dataset's.
func TestOddWeights(t *testing.T) {
	write := func(weights ...float32) (string, *WriteReport, error) {
		c := five()
		c.Edges = weighed{EdgePairs{0, 1, 1, 0, 1, 2, 2, 1}, weights}
		dir := filepath.Join(t.TempDir(), "five")
		r, err := Write(dir, c, false)
		return dir, r, err
	}
	dir, r, err := write(1, 2, 3, 3)
	if err != nil || !r.Directed || !r.Uneven {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, c := range []struct {
		weight float32
		says   string
	}{
		{-1, "edge 2, 1 → 2, has the weight -1"}, {0, "has the weight 0"}, {float32(math.NaN()), "has the weight NaN"},
		{float32(math.Inf(1)), "has the weight +Inf"},
	} {
		if _, _, err := write(1, 1, c.weight, 1); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v", c.weight, err)
		}
	}
	c := five()
	c.Edges = weighed{EdgePairs{0, 1, 0, 1}, []float32{3e38, 3e38}}
	if _, err := Write(filepath.Join(t.TempDir(), "five"), c, false); err == nil ||
		!strings.Contains(err.Error(), "between 0 and 1 add up to infinity") {
		t.Errorf("a sum that is infinite: %v", err)
	}
	path := filepath.Join(dir, "weights.bin")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	for name, harm := range map[string]func(){
		"damaged": func() { os.WriteFile(path, b, 0o644) },
		"absent":  func() { os.Remove(path) },
	} {
		harm()
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "weights.bin") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
