package config

import (
	"slices"
	"strings"
	"testing"

	"siafu/graph"
)

// The choices for a graph depend on its split, its features and its edges. Given flags are not
// changed, and without information nothing is.
func TestSuit(t *testing.T) {
	photo := graph.Meta{Vertices: 7650, Edges: 238162, Classes: 8, Train: 4590, FeatureNorm: 16.1, FeatureNNZ: 1979909}
	tiny, few, large, unknown, school := photo, photo, photo, photo, photo
	lone := photo
	lone.Task, lone.ClassCounts = graph.MultiClass, []int64{78, 22}
	school.FeatureNNZ = 5 * school.Vertices
	words := photo
	words.FeatureDim = 745
	thin := photo
	thin.FeatureNorm = 2
	tiny.FeatureNorm, few.FeatureNorm, few.Train = 0.087, 0.27, 160
	large.Vertices, large.FeatureNNZ, large.Edges, unknown.FeatureNorm = 201585, 50_000_000, 16_000_000, 0
	for _, c := range []struct {
		name  string
		meta  graph.Meta
		set   func(*Config)
		given []string
		want  string
	}{
		{"many labels", photo, nil, nil, "hidden=64"},
		{"tiny features", tiny, nil, nil, "hidden=64 input-scale=46"},
		{"tiny features, sums", tiny, func(c *Config) { c.Model = "gin" }, nil, "hidden=64 jumping=cat norm=batch"},
		{"large sums", photo, func(c *Config) { c.Model = "gin" }, nil, "hidden=64 jumping=cat norm=batch input-scale=0.0039"},
		{"maxima", photo, func(c *Config) { c.Model = "sage-max" }, nil, "hidden=64 norm=batch"},
		{"maxima of one layer", photo, func(c *Config) { c.Model, c.Layers = "sage-max", 1 }, nil, ""},
		{"perceptron before maxima", words, func(c *Config) { c.Model = "sage-pool" }, nil, "hidden=64 pool-hidden=64"},
		{"the same, few features", photo, func(c *Config) { c.Model = "sage-pool" }, nil, "hidden=64"},
		{"the same, given", words, func(c *Config) { c.Model, c.PoolHidden = "sage-pool", 32 }, []string{"pool-hidden"}, "hidden=64"},
		{"sums, few labels", few, func(c *Config) { c.Model = "gin" }, nil, ""},
		{"sums of a norm", tiny, func(c *Config) { c.Model = "gin" }, []string{"norm"}, "hidden=64"},
		{"sums out of step", tiny, func(c *Config) { c.Model, c.Mode = "gin", "async" }, nil, "hidden=64"},
		{"means of many", thin, nil, nil, "hidden=64 input-scale=5.6"},
		{"itself and means", thin, func(c *Config) { c.Model = "sage" }, nil, "hidden=64 input-scale=5.6"},
		{"itself", thin, func(c *Config) { c.Model = "mlp" }, nil, "hidden=64"},
		{"itself and maxima", thin, func(c *Config) { c.Model = "sage-max" }, nil, "hidden=64 norm=batch"},
		{"a large class", lone, nil, nil, "hidden=64 monitor=loss class-weights=root"},
		{"a large class, weighed", lone, func(c *Config) { c.ClassWeights = weightsOff },
			[]string{"class-weights"}, "hidden=64 monitor=loss"},
		{"a large class, labels", lone, func(c *Config) { c.Task = graph.MultiLabel }, nil, "hidden=64"},
		{"few labels", few, nil, nil, ""},
		{"many edges", large, nil, nil, "hidden=64 eval-every=5"},
		{"short rows", school, nil, nil, "hidden=64 input-dropout=0"},
		{"given", tiny, func(c *Config) { c.Hidden, c.InputScale = 8, 1 }, []string{"hidden", "input-scale"}, ""},
		{"unknown", unknown, nil, nil, ""},
		{"fixed", tiny, func(c *Config) { c.Defaults = "fixed" }, nil, ""},
		{"a recipe", tiny, func(c *Config) { c.Recipe = "gcn-cora" }, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := Defaults()
			if c.set != nil {
				c.set(&cfg)
			}
			var got []string
			for _, s := range cfg.Suit(&c.meta, func(flag string) bool { return slices.Contains(c.given, flag) }) {
				got = append(got, s.Flag+"="+s.Value)
				if s.Value != cfg.value(s.Flag) || s.Why == "" {
					t.Errorf("%+v, and the configuration has %s", s, cfg.value(s.Flag))
				}
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("%q, want %q", text, c.want)
			}
		})
	}
}

// Each recipe is made of flags that a run accepts, has its figures and a date, and says
// what was changed of it.
func TestRecipes(t *testing.T) {
	names := map[string]bool{}
	for _, r := range Recipes() {
		if names[r.Name] || r.Published == "" || r.Date == "" || r.Dataset == "" {
			t.Errorf("%+v", r)
		}
		names[r.Name] = true
		if len(RecipeFlags(r.Name)) != len(r.options()) || len(r.options()) < len(strings.Fields(r.Flags))/2 {
			t.Errorf("%s: flags %q", r.Name, r.Flags)
		}
		c := Defaults()
		c.Recipe = r.Name
		for flag := range RecipeFlags(r.Name) {
			c.value(flag)
		}
	}
	c := Defaults()
	c.Recipe, c.Initializer, c.EvalEvery, c.Momentum = "gcn-cora", "xavier", 0, 0.1
	if got := c.Changed(); got != nil {
		t.Errorf("changed %q, and nothing was: the recipe says nothing of --optimizer momentum", got)
	}
	c.Hidden = 32
	if got := c.Changed(); !slices.Equal(got, []string{"--hidden=32 (16)"}) {
		t.Errorf("changed %q", got)
	}
	cora := graph.Meta{Vertices: 2708, Normalized: true}
	if got := c.Doubts(&cora); got != "" {
		t.Error(got)
	}
	for _, m := range []graph.Meta{{Vertices: 2708}, {Vertices: 2709, Normalized: true}} {
		if c.Doubts(&m) == "" {
			t.Errorf("no doubts about %+v", m)
		}
	}
}
