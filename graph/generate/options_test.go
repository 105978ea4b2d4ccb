package generate

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/mapped"
)

func TestErrors(t *testing.T) {
	ok := Options{Vertices: 1000, Edges: 5000}
	for _, tt := range []struct {
		name string
		edit func(o *Options)
		kind fault.Kind
		want string
	}{
		{"preset", func(o *Options) { o.Like = "facebook" }, fault.Usage, "friendster"},
		{"no vertices", func(o *Options) { o.Vertices = 0 }, fault.Config, "vertices 0"},
		{"too many vertices", func(o *Options) { o.Scale = 1e6; o.Vertices = 1 << 20 }, fault.Config, "vertices"},
		{"negative edges", func(o *Options) { o.Edges = -1 }, fault.Config, "edges -1"},
		{"classes", func(o *Options) { o.Classes = 501 }, fault.Config, "classes 501"},
		{"features", func(o *Options) { o.Features = -1 }, fault.Config, "features -1"},
		{"homophily", func(o *Options) { o.Homophily = 1.5 }, fault.Config, "homophily 1.5"},
		{"homophily that does not fit", func(o *Options) { o.Homophily = 0.9; o.Classes = 100; o.Edges = 10_000 },
			fault.Config, "at most 0.45"},
		{"skew", func(o *Options) { o.Skew = 1 }, fault.Config, "skew 1"},
		{"skew not a number", func(o *Options) { o.Skew = math.NaN() }, fault.Config, "skew NaN"},
		{"split", func(o *Options) { o.Train, o.Val = 0.7, 0.4 }, fault.Config, "0.7 0.4"},
		{"scale", func(o *Options) { o.Scale = -1 }, fault.Config, "scale -1"},
		{"dense", func(o *Options) { o.Edges = 900_000 }, fault.Config, "too many to sample"},
		{"scale to nothing", func(o *Options) { o.Scale = 1e-9 }, fault.Config, "vertices 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := ok
			tt.edit(&o)
			dir := filepath.Join(t.TempDir(), "out")
			_, err := Write(dir, o, false)
			if fault.KindOf(err) != tt.kind || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v (kind %d), want kind %d and %q", err, fault.KindOf(err), tt.kind, tt.want)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("it left a folder behind")
			}
		})
	}
}

// TestPresets: every preset resolves at full size without generating it.
func TestPresets(t *testing.T) {
	for _, p := range presets {
		name := p.name
		o, fitted, err := Options{Like: name}.resolve()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		e, err := newEdges(o)
		if err != nil || fitted != 0 {
			t.Errorf("%s: %v, homophily reduced from %g", name, err, fitted)
			continue
		}
		perEdge := 2 * float64(e.draws) / float64(o.Edges)
		t.Logf("%s: %.3f draws an edge", name, perEdge)
		if perEdge > 3 {
			t.Errorf("%s: %.1f draws an edge", name, perEdge)
		}
	}
}

// TestSyntheticGraphs writes each at a small scale: sizes, degrees and homophily are those of the
// published graph, and memory on the heap does not grow with the edges, of which no
// list is made. The CSR's 4 bytes an edge and 16 a vertex, and the features, lie outside the heap, where
// package mapped has such memory.
func TestSyntheticGraphs(t *testing.T) {
	named := []string{"reddit-small", "reddit-large", "amazon", "friendster", "flickr", "ogbn-arxiv",
		"ogbn-products", "ogbn-papers100m", "yelp"}
	if names := Presets(); !slices.Equal(names, append(slices.Clone(named), "ogbn-mag", "mag240m")) {
		t.Errorf("synthetic graphs are %v", names)
	}
	for _, name := range named {
		p, _ := findPreset(name)
		vertices := int64(2000)
		if name == "reddit-large" {
			vertices = 4000 // in which its degrees find room
		}
		o := Options{Like: name, Scale: float64(vertices) / float64(p.vertices), Seed: 1}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		dir := filepath.Join(t.TempDir(), name)
		if _, err := Write(dir, o, false); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		runtime.ReadMemStats(&after)
		m, err := graph.ReadMeta(dir)
		if err != nil {
			t.Fatal(err)
		}
		r, _, _ := o.resolve()
		mean := float64(m.Edges) / float64(m.Vertices)
		if asked := float64(p.edges) / float64(p.vertices); math.Abs(mean/asked-1) > 0.03 || m.Vertices != vertices {
			t.Errorf("%s: %d vertices of %.1f edges, %.1f are published", name, m.Vertices, mean, asked)
		}
		if !m.Synthetic || m.Directed || m.FeatureDim != p.features || m.Classes != p.classes || m.Name != name+"-like" {
			t.Errorf("%s: meta is %+v", name, m)
		}
		// Hubs of a power law stand out the less the denser a graph of this size is.
		if most := float64(m.MaxInDegree); most < 1.5*mean {
			t.Errorf("%s: the greatest degree is %g, the mean %.1f", name, most, mean)
		}
		if inside := inside(t, dir); math.Abs(inside-r.Homophily) > 0.03 {
			t.Errorf("%s: %.2f of the edges are in a class, %.2f were asked for", name, inside, r.Homophily)
		}
		heap := int64(after.TotalAlloc - before.TotalAlloc)
		t.Logf("%s: %d edges, %d bytes of heap", name, m.Edges, heap)
		if heap > heapOfAll && !mapped.UnderRace {
			t.Errorf("%s: %d bytes of heap for %d edges", name, heap, m.Edges)
		}
	}
}

// heapOfAll is what writing any of them may take of the heap: 7 to 10 MB are buffers and
// labels; a list of reddit-small's edges alone would be 8 more, of reddit-large's 38.
const heapOfAll = 14 << 20

// inside returns the share of edges in a class.
func inside(t *testing.T, dir string) float64 {
	t.Helper()
	d, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	same := 0
	for v := range d.In.Rows() {
		for _, u := range d.In.Row(v) {
			if d.Labels[u] == d.Labels[v] {
				same++
			}
		}
	}
	return float64(same) / float64(len(d.In.Cols))
}
