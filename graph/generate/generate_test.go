package generate

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"

	"pgregory.net/rapid"
)

// distinct lists the distinct edges as stored: both directions of an
// undirected graph. It fails on self loops and ids out of range.
func distinct(t rapid.TB, c *graph.Content) [][2]uint32 {
	t.Helper()
	var out [][2]uint32
	err := c.Edges.Each(func(u, v uint32) error {
		if u == v || int64(u) >= c.Vertices || int64(v) >= c.Vertices {
			t.Fatalf("edge %d-%d of %d vertices", u, v, c.Vertices)
		}
		out = append(out, [2]uint32{u, v})
		if c.Symmetrise {
			out = append(out, [2]uint32{v, u})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(out, func(a, b [2]uint32) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(out)
}

// generated returns the content for o, with its features drawn.
func generated(t testing.TB, o Options) *graph.Content {
	t.Helper()
	c, err := content(o)
	if err != nil {
		t.Fatal(err)
	}
	c.Features.Dense = make([]float32, c.Features.Rows*c.Features.Dim)
	c.Features.Draw(c.Features.Dense, 0)
	return c
}

func TestEdges(t *testing.T) {
	for _, o := range []Options{
		{Vertices: 20_000, Edges: 200_000, Classes: 10},
		{Vertices: 20_000, Edges: 200_000, Classes: 10, Directed: true, Seed: 3},
		{Vertices: 20_001, Edges: 400_000, Classes: 7, Skew: 0.8, Homophily: 0.3},
		{Vertices: 5_000, Edges: 500_000, Classes: 2, Homophily: -1},
		{Vertices: 3_000, Edges: 900_000, Classes: 1, Skew: -1},
		{Like: "reddit-small", Scale: 0.01, Features: 4}, // the homophily does not fit
		{Vertices: 4_000, Edges: 800_000, Classes: 10, Homophily: 0.99, Skew: 0.8},
		{Like: "ogbn-arxiv", Scale: 0.1, Features: 4},
		{Like: "flickr", Scale: 0.3, Features: 4},
		{Vertices: 2_708, Edges: 10_556, Classes: 7, Homophily: 0.81},
	} {
		t.Run(o.Like, func(t *testing.T) {
			r, _, err := o.resolve()
			if err != nil {
				t.Fatal(err)
			}
			c := generated(t, o)
			es := distinct(t, c)
			if off := math.Abs(float64(len(es))/float64(r.Edges) - 1); off > 0.02 {
				t.Errorf("%d edges, asked %d: off by %.2g", len(es), r.Edges, off)
			}
			same := 0
			for _, e := range es {
				if c.Labels[e[0]] == c.Labels[e[1]] {
					same++
				}
			}
			if h := float64(same) / float64(len(es)); math.Abs(h-r.Homophily) > 0.02 {
				t.Errorf("homophily %.3f, asked %.3f", h, r.Homophily)
			}
			t.Logf("edges %d of %d, same class %d, draws %d", len(es), r.Edges, same, c.Edges.(*edges).draws)
		})
	}
}

// TestSkew fits the exponent of the degree distribution with the estimator of
// Hill (1975) on the tail that the flattened head leaves.
func TestSkew(t *testing.T) {
	for _, skew := range []float64{-1, 0.4, 0.6} {
		c := generated(t, Options{Vertices: 200_000, Edges: 2_000_000, Classes: 4, Skew: skew, Features: 1})
		degree := make([]float64, c.Vertices)
		for _, e := range distinct(t, c) {
			degree[e[1]]++
		}
		slices.Sort(degree)
		slices.Reverse(degree)
		const from, to = 200, 10_000 // ranks
		slope := math.Log(degree[from]/degree[to]) / math.Log(float64(to)/from)
		t.Logf("skew %g: slope %.3f, degrees %g %g %g %g", skew, slope, degree[0], degree[from], degree[to], degree[c.Vertices/2])
		// Degrees scatter around their expectation, which alone makes a slope
		// of 0.1 here.
		if want := max(skew, 0.1); math.Abs(slope-want) > 0.08 {
			t.Errorf("skew %g: the degrees fall like rank^-%.3f", skew, slope)
		}
	}
}

// TestFeaturesInform classifies by the nearest centroid, learnt on the
// training set.
func TestFeaturesInform(t *testing.T) {
	const dim, classes = 50, 4
	for _, tt := range []struct{ noise, least, most float64 }{
		{-1, 1, 1},
		{0.25, 0.97, 1},
		{1, 0.5, 0.8},
		{100, 0.2, 0.3},
	} {
		c := generated(t, Options{Vertices: 8_000, Edges: 8_000, Classes: classes, Features: dim, Noise: tt.noise})
		centroid := make([]float64, classes*dim)
		for v, l := range c.Labels {
			if c.Split[v] == graph.SplitTrain {
				for j, x := range c.Features.Dense[v*dim:][:dim] {
					centroid[int(l)*dim+j] += float64(x) / (0.6 * 8_000 / classes)
				}
			}
		}
		var right, all, variance float64
		for v, l := range c.Labels {
			row := c.Features.Dense[v*dim:][:dim]
			for _, x := range row {
				variance += float64(x*x) / float64(len(c.Features.Dense))
			}
			if c.Split[v] != graph.SplitTest {
				continue
			}
			if all++; nearest(row, centroid, classes) == int(l) {
				right++
			}
		}
		if acc := right / all; acc < tt.least || acc > tt.most {
			t.Errorf("noise %g: accuracy %.3f, want %g to %g", tt.noise, acc, tt.least, tt.most)
		}
		if variance < 0.8 || variance > 1.2 {
			t.Errorf("noise %g: variance %.3f, want 1", tt.noise, variance)
		}
	}
}

// nearest returns the class whose centroid is nearest to row.
func nearest(row []float32, centroid []float64, classes int) int {
	best, least := 0, math.Inf(1)
	for k := range classes {
		var sum float64
		for j, x := range row {
			d := float64(x) - centroid[k*len(row)+j]
			sum += d * d
		}
		if sum < least {
			best, least = k, sum
		}
	}
	return best
}

func TestSplitShares(t *testing.T) {
	c := generated(t, Options{Vertices: 100_000, Edges: 10, Train: 0.5, Val: 0.1, Features: 1})
	var counts [4]float64
	for _, s := range c.Split {
		counts[s]++
	}
	for s, want := range [4]float64{0, 50_000, 10_000, 40_000} {
		if math.Abs(counts[s]-want) > 1_000 {
			t.Errorf("%g vertices in set %d, want about %g", counts[s], s, want)
		}
	}
}

// digest returns a hash over everything that options generate.
func digest(t testing.TB, o Options) [32]byte {
	c := generated(t, o)
	h := sha256.New()
	c.Edges.Each(func(u, v uint32) error { return binary.Write(h, binary.LittleEndian, []uint32{u, v}) })
	for _, a := range []any{c.Labels, c.Split, c.Features.Dense} {
		binary.Write(h, binary.LittleEndian, a)
	}
	return [32]byte(h.Sum(nil))
}

func TestDeterministic(t *testing.T) {
	o := Options{Vertices: 3_000, Edges: 100_000, Seed: 5}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	want := digest(t, o)
	for _, procs := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(procs)
		if digest(t, o) != want {
			t.Errorf("%d threads make another graph than one", procs)
		}
	}
	if o.Seed = 6; digest(t, o) == want {
		t.Error("two seeds make the same graph")
	}
}

// TestWrite compares whole folders of one and two threads.
func TestWrite(t *testing.T) {
	o := Options{Like: "flickr", Scale: 0.05, Features: 8, Seed: 1}
	dir := t.TempDir()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var folders [2]string
	for i := range folders {
		runtime.GOMAXPROCS(i + 1)
		folders[i] = filepath.Join(dir, "ds", string(rune('a'+i)))
		if err := os.MkdirAll(filepath.Dir(folders[i]), 0o777); err != nil {
			t.Fatal(err)
		}
		r, err := Write(folders[i], o, false)
		if err != nil {
			t.Fatal(err)
		}
		if asked := 899_756 / 20.0; math.Abs(float64(r.Edges)/asked-1) > 0.02 || r.SelfLoops > 0 {
			t.Errorf("%d edges and %d self loops, want about %g and none", r.Edges, r.SelfLoops, asked)
		}
	}
	files, err := os.ReadDir(folders[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		a, errA := os.ReadFile(filepath.Join(folders[0], f.Name()))
		b, errB := os.ReadFile(filepath.Join(folders[1], f.Name()))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs between one and two threads (%v, %v)", f.Name(), errA, errB)
		}
	}
	m, err := graph.ReadMeta(folders[0])
	if err != nil {
		t.Fatal(err)
	}
	if !m.Synthetic || m.Name != "flickr-like" || m.Vertices != 4463 || m.Classes != 7 || m.FeatureDim != 8 {
		t.Errorf("meta is %+v", m)
	}
}

// TestEachStops: an error of yield comes back at once, and the source can be
// read again.
func TestEachStops(t *testing.T) {
	c := generated(t, Options{Vertices: 1000, Edges: 200_000, Classes: 2, Features: 1})
	want := fault.New(fault.Runtime, "test", "", "stop")
	calls := 0
	err := c.Edges.Each(func(u, v uint32) error { calls++; return want })
	if err != error(want) || calls != 1 {
		t.Errorf("error is %v after %d calls, want %v after one", err, calls, want)
	}
	if len(distinct(t, c)) == 0 {
		t.Error("nothing is left after an error")
	}
}

func BenchmarkEdges(b *testing.B) {
	o, _, err := Options{Like: "reddit-small", Scale: 0.1}.resolve()
	if err != nil {
		b.Fatal(err)
	}
	e, err := newEdges(o)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		e.Each(func(u, v uint32) error { return nil })
	}
	b.ReportMetric(float64(e.draws)*float64(b.N)/b.Elapsed().Seconds(), "draws/s")
}

// Strays have another label than vertices with the same features, in the share that was
// asked for, and the homophily of labels is all the same as asked.
func TestStrays(t *testing.T) {
	const n = 20_000
	made := func(strays float64) *graph.Dataset {
		dir := filepath.Join(t.TempDir(), "data")
		if _, err := Write(dir, Options{Vertices: n, Edges: 15 * n, Features: 4, Classes: 5, Homophily: 0.5,
			Strays: strays}, false); err != nil {
			t.Fatal(err)
		}
		d, err := graph.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	}
	none, some := made(0), made(0.25)
	strays, same := 0, 0
	for v, label := range some.Labels {
		if label != none.Labels[v] {
			strays++
		}
		for _, u := range some.In.Row(v) {
			if some.Labels[u] == label {
				same++
			}
		}
	}
	// Both are sums of independent draws: their deviations are at most 0.004 and 0.001.
	if share := float64(strays) / n; math.Abs(share-0.25) > 0.02 {
		t.Errorf("%.3f of the labels differ", share)
	}
	if share := float64(same) / float64(len(some.In.Cols)); math.Abs(share-0.5) > 0.01 {
		t.Errorf("%.3f of the edges join equal labels", share)
	}
	if !slices.Equal(none.Features.Dense, some.Features.Dense) {
		t.Error("features depend on strays")
	}
	if _, _, err := (Options{Vertices: 100, Edges: 10, Strays: 0.95}).resolve(); fault.KindOf(err) != fault.Config {
		t.Errorf("0.95 is taken: %v", err)
	}
}

// The vertices of the last community of each class are in the test set, those of the
// others in all three, in the shares that were asked for; edges between two communities
// of a class count for the homophily.
func TestCommunities(t *testing.T) {
	o := Options{Vertices: 20_000, Edges: 300_000, Classes: 5, Communities: 4, Homophily: 0.7, Train: 0.5, Val: 0.1, Features: 3}
	c := generated(t, o)
	e, last := c.Edges.(*edges), [4]float64{}
	all := last
	for v, set := range c.Split {
		block := e.block(uint64(v))
		if c.Labels[v] != int32(block%5) {
			t.Fatalf("vertex %d of community %d has label %d", v, block, c.Labels[v])
		}
		if all[set]++; block >= 15 {
			last[set]++
		}
	}
	if last[graph.SplitTrain]+last[graph.SplitVal] > 0 || last[graph.SplitTest] != 5_000 {
		t.Errorf("%v of the last communities are in none, training, validation and test", last)
	}
	// Four deviations of 20,000 draws are 0.014.
	if train, val := all[graph.SplitTrain]/20_000, all[graph.SplitVal]/20_000; math.Abs(train-0.5) > 0.014 || math.Abs(val-0.1) > 0.014 {
		t.Errorf("shares of training and validation are %g and %g", train, val)
	}
	same, es := 0, distinct(t, c)
	for _, e := range es {
		if c.Labels[e[0]] == c.Labels[e[1]] {
			same++
		}
	}
	if h := float64(same) / float64(len(es)); math.Abs(h-0.7) > 0.01 {
		t.Errorf("homophily %.3f", h)
	}
	if _, _, err := (Options{Vertices: 100, Edges: 10, Communities: 2, Train: 0.5, Val: 0.1}).resolve(); fault.KindOf(err) != fault.Config {
		t.Errorf("a share of 0.6 beside half of the vertices is taken: %v", err)
	}
}
