package generate

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph/fault"
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
		{"homophily that does not fit", func(o *Options) { o.Homophily = 0.9; o.Classes = 100; o.Edges = 10_000 }, fault.Config, "at most 0.45"},
		{"skew", func(o *Options) { o.Skew = 1 }, fault.Config, "skew 1"},
		{"skew not a number", func(o *Options) { o.Skew = math.NaN() }, fault.Config, "skew NaN"},
		{"split", func(o *Options) { o.Train, o.Val = 0.7, 0.4 }, fault.Config, "0.7 0.4"},
		{"scale", func(o *Options) { o.Scale = -1 }, fault.Config, "scale -1"},
		{"dense", func(o *Options) { o.Edges = 900_000 }, fault.Config, "no room"},
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
	for _, name := range Presets() {
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
