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

// described are edges with dim features each, beside what else they have.
func described(edges EdgeSource, dim int, features, weights []float32) EdgeSource {
	return WithFeatures(edges, dim, func(yield func(src, dst uint32, weight float32, features []float32) error) error {
		i := -1
		return edges.Each(func(src, dst uint32) error {
			i++
			w := float32(1)
			if weights != nil {
				w = weights[i]
			}
			return yield(src, dst, w, features[i*dim:min((i+1)*dim, len(features))])
		})
	})
}

// Features are stored with their edges for any windows, with and without weights. A repeated
// edge has the mean of its features, in both directions if edges are symmetrised.
func TestEdgeFeatures(t *testing.T) {
	const n, dim = 40, 3
	rng := rand.New(rand.NewPCG(1, 3))
	var e weighed
	var features []float32
	for range 500 { // many twice
		e.EdgePairs = append(e.EdgePairs, rng.Uint32N(n), rng.Uint32N(n))
		e.weights = append(e.weights, rng.Float32()+0.1)
		for range dim {
			features = append(features, float32(rng.NormFloat64()))
		}
	}
	for _, symmetrise := range []bool{false, true} {
		want, times := map[[2]uint32][dim]float64{}, map[[2]uint32]float64{}
		for i := 0; i < len(e.EdgePairs); i += 2 {
			u, v := e.EdgePairs[i], e.EdgePairs[i+1]
			for k, pair := range [][2]uint32{{u, v}, {v, u}} {
				if u == v || k == 1 && !symmetrise {
					continue
				}
				sum := want[pair]
				for j := range sum {
					sum[j] += float64(features[i/2*dim+j])
				}
				want[pair], times[pair] = sum, times[pair]+1
			}
		}
		for _, weighted := range []bool{false, true} {
			for _, memory := range []int64{0, 320, 2 << 10} {
				c := five()
				c.Vertices, c.EdgeMemory, c.Symmetrise = n, memory, symmetrise
				c.Features, c.Labels, c.Split = Features{Rows: n, Dim: 1, Dense: make([]float32, n)}, make([]int32, n), make([]uint8, n)
				c.ClassNames, c.IDs = nil, nil
				if c.Edges = described(e.EdgePairs, dim, features, nil); weighted {
					c.Edges = described(e, dim, features, e.weights)
				}
				dir := filepath.Join(t.TempDir(), "d")
				r, err := Write(dir, c, false)
				if err != nil {
					t.Fatal(err)
				}
				d, err := Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				if m := d.Meta; m.Format != EdgeFormat || m.EdgeDim != dim || r.EdgeDim != dim || r.Weighted != weighted ||
					r.Directed == symmetrise || m.Edges != int64(len(want)) {
					t.Errorf("report %+v, format %d, %d features", r, m.Format, m.EdgeDim)
				}
				for pair, sum := range want {
					at, ok := slices.BinarySearch(d.In.Row(int(pair[1])), pair[0])
					if !ok {
						t.Fatalf("no edge %v", pair)
					}
					for j, s := range sum {
						got := float64(d.EdgeFeatures[(int(d.In.Offsets[pair[1]])+at)*dim+j])
						if math.Abs(got-s/times[pair]) > 1e-6 { // a rounding of float32
							t.Fatalf("feature %d of edge %v is %v, want %v", j, pair, got, s/times[pair])
						}
					}
				}
				d.Close()
			}
		}
	}
}

// A graph is directed for its edges' features alone; features that are no numbers or too few
// are faults, and so is a file of theirs that is damaged, absent or another dataset's.
func TestOddEdgeFeatures(t *testing.T) {
	write := func(features ...float32) (string, *WriteReport, error) {
		c := five()
		c.Edges = described(EdgePairs{0, 1, 1, 0, 1, 2, 2, 1}, 2, features, nil)
		dir := filepath.Join(t.TempDir(), "five")
		r, err := Write(dir, c, false)
		return dir, r, err
	}
	if _, r, err := write(1, 2, 1, 2, 3, 4, 3, 4); err != nil || r.Directed {
		t.Errorf("features alike both ways: %+v, %v", r, err)
	}
	dir, r, err := write(1, 2, 1, 3, 3, 4, 3, 4)
	if err != nil || !r.Directed || !r.Uneven {
		t.Fatalf("%+v, %v", r, err)
	}
	for says, features := range map[string][]float32{
		"feature 1 of edge 2, 1 → 2, is NaN":                    {1, 2, 1, 2, 1, float32(math.NaN()), 1, 2},
		"feature 0 of edge 0, 0 → 1, is -Inf":                   {float32(math.Inf(-1)), 2, 1, 2, 1, 2, 1, 2},
		"edge 3, 2 → 1, has 1 features, but other edges have 2": {1, 2, 1, 2, 1, 2, 1},
	} {
		if _, _, err := write(features...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
	path := filepath.Join(dir, "edge_features.bin")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := write(1, 2, 1, 4, 3, 4, 3, 4)
	if err != nil {
		t.Fatal(err)
	}
	another, err := os.ReadFile(filepath.Join(other, "edge_features.bin"))
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	for _, harm := range []func(){
		func() { os.WriteFile(path, b, 0o644) },
		func() { os.WriteFile(path, another, 0o644) },
		func() { os.Remove(path) },
	} {
		harm()
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "edge_features.bin") {
			t.Errorf("opened: %v", err)
		}
	}
}
