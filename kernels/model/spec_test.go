package model

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The order of products follows from shapes as documented at Choose.
func TestChoose(t *testing.T) {
	auto := Choices{Order: "auto", CacheInput: "auto", Ghosts: "auto"}
	dense := Load{Vertices: 1000, Edges: 5000, CacheFits: true}
	sparse := Load{Vertices: 1000, Edges: 5000, FeatureNNZ: 9000, CacheFits: true}
	full := dense
	full.CacheFits = false
	lists, sent := auto, auto
	lists.Lists, sent.Lists, sent.Ghosts = true, true, "none"
	table := Load{Vertices: 1000, Edges: 80000, FeatureNNZ: 5000, CacheFits: true} // five non-zeros of a hundred features per vertex
	three := Spec{Kind: "sign", Dims: []int{100, 64, 64, 64, 64, 10}, Design: Design{Hops: 3}}
	for _, tc := range []struct {
		name  string
		spec  Spec
		load  Load
		c     Choices
		want  []Order
		cache bool
		why   string
	}{
		{"narrowing", Spec{Kind: "gcn", Dims: []int{128, 128, 10}}, dense, auto, []Order{GatherFirst, ApplyFirst}, true, "once"},
		{"widening", Spec{Kind: "gcn", Dims: []int{8, 16, 64}}, dense, auto, []Order{GatherFirst, GatherFirst}, true, "once"},
		{"bag of words", Spec{Kind: "gcn", Dims: []int{1433, 16, 7}}, sparse, auto, []Order{ApplyFirst, ApplyFirst}, false, "sparse"},
		{"sparse but narrow", Spec{Kind: "gcn", Dims: []int{16, 64, 7}}, sparse, auto, []Order{GatherFirst, ApplyFirst}, true, "once"},
		{"no memory", Spec{Kind: "gcn", Dims: []int{128, 32, 10}}, full, auto, []Order{ApplyFirst, ApplyFirst}, false, "memory"},
		{"no memory, hardly narrowing", Spec{Kind: "gcn", Dims: []int{128, 100, 10}}, full, auto,
			[]Order{GatherFirst, ApplyFirst}, false, "memory"},
		{"dropout of the input", Spec{Kind: "gcn", Dims: []int{128, 32, 10}, InputDropout: 0.5}, dense, auto,
			[]Order{ApplyFirst, ApplyFirst}, false, "dropout"},
		{"table", Spec{Kind: "gcn", Dims: []int{128, 128, 10}, InputDropout: 0.5}, table, lists,
			[]Order{GatherFirst, ApplyFirst}, false, "features=lists"},
		{"table, hidden layer narrow", Spec{Kind: "gcn", Dims: []int{128, 32, 10}, InputDropout: 0.5}, table, lists,
			[]Order{ApplyFirst, ApplyFirst}, false, "(the input has dropout; --input-dropout 0 allows it)"},
		{"table, no lists", Spec{Kind: "sage", Dims: []int{128, 128, 10}, InputDropout: 0.5}, table, auto,
			[]Order{GatherFirst, ApplyFirst}, false, "allows it)"},
		{"table, wide", Spec{Kind: "gcn", Dims: []int{2000, 128, 10}, InputDropout: 0.5}, table, lists,
			[]Order{ApplyFirst, ApplyFirst}, false, "dropout"},
		{"table, ghosts sent", Spec{Kind: "gcn", Dims: []int{128, 128, 10}, InputDropout: 0.5}, table, sent,
			[]Order{GatherFirst, ApplyFirst}, false, "allows it)"},
		{"cache off", Spec{Kind: "gcn", Dims: []int{64, 64, 10}}, dense, Choices{"auto", "off", "auto", false},
			[]Order{GatherFirst, ApplyFirst}, false, "off"},
		{"cache on", Spec{Kind: "gcn", Dims: []int{1433, 16, 7}}, sparse, Choices{"auto", "on", "auto", false},
			[]Order{GatherFirst, ApplyFirst}, true, "asked"},
		{"gather first", Spec{Kind: "gcn", Dims: []int{128, 32, 10}}, full, Choices{"gather-first", "auto", "auto", false},
			[]Order{GatherFirst, GatherFirst}, false, "memory"},
		{"apply first", Spec{Kind: "gcn", Dims: []int{8, 32, 64}}, dense, Choices{"apply-first", "auto", "auto", false},
			[]Order{ApplyFirst, ApplyFirst}, false, "rows meet"},
		{"gin, bag of words", Spec{Kind: "gin", Dims: []int{1433, 16, 7}}, sparse, auto, []Order{ApplyFirst, ApplyFirst}, false, "sparse"},
		{"gin, widening", Spec{Kind: "gin", Dims: []int{8, 16, 64}, InputDropout: 0.5}, dense, auto,
			[]Order{GatherFirst, GatherFirst}, false, "dropout"},
		{"attention", Spec{Kind: "gat", Dims: []int{8, 16, 64}}, dense, auto, []Order{ApplyFirst, ApplyFirst}, false, "rows meet"},
		{"powers", Spec{Kind: "sgc", Dims: []int{128, 10, 10, 10}}, dense, auto,
			[]Order{GatherFirst, GatherFirst, GatherFirst}, true, "(A^2 X is computed"},
		{"powers, bag of words", Spec{Kind: "sgc", Dims: []int{1433, 7, 7, 7}}, sparse, auto,
			[]Order{GatherFirst, GatherFirst, GatherFirst}, false, "dense A^2 X"},
		{"powers, few words", Spec{Kind: "sgc", Dims: []int{60, 7, 7, 7, 7}}, sparse, auto,
			[]Order{GatherFirst, GatherFirst, GatherFirst, GatherFirst}, true, "(A^3 X is"},
		{"powers side by side", three, dense, auto, make([]Order, 5), true, "(AX to A^3 X are computed"},
		{"powers side by side, no memory", three, full, auto, make([]Order, 5), false, "(AX to A^3 X do not fit"},
		{"powers, dropout of the input", Spec{Kind: "sgc", Dims: []int{128, 10, 10}, InputDropout: 0.1}, dense, auto,
			make([]Order, 2), false, "dropout"},
		{"powers, products first", three, dense, Choices{"apply-first", "auto", "auto", false}, make([]Order, 5), false, "rows meet"},
		{"propagation behind", Spec{Kind: "appnp", Dims: []int{128, 16, 4, 4}, Design: Design{Hops: 1}}, dense, auto,
			make([]Order, 3), false, "nothing"},
		{"perceptron", Spec{Kind: "mlp", Dims: []int{8, 32, 4}}, dense, auto, []Order{GatherFirst, GatherFirst}, false, "propagation"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := tc.spec
			why := s.Choose(tc.load, tc.c)
			if d := cmp.Diff(tc.want, s.Orders); d != "" || s.CacheInput != tc.cache || !strings.Contains(why, tc.why) ||
				s.Listed != strings.Contains(tc.why, "lists") {
				t.Errorf("orders %v, cache %t, lists %t, %q; want %v, %t, …%s…", s.Orders, s.CacheInput, s.Listed,
					why, tc.want, tc.cache, tc.why)
			}
		})
	}
}

// Rows of ghosts are computed if the first layer gathers first or ghosts have few non-zeros,
// unless the options say otherwise.
func TestLocalGhosts(t *testing.T) {
	few, many := Load{Vertices: 1000, Edges: 5000, FeatureNNZ: 16000}, Load{Vertices: 1000, Edges: 5000, FeatureNNZ: 40000}
	for name, tc := range map[string]struct {
		dims   []int
		drop   float64
		load   Load
		ghosts string
		want   bool
	}{
		"few non-zeros":                {[]int{1433, 16, 7}, 0, few, "auto", true},
		"few non-zeros, none":          {[]int{1433, 16, 7}, 0, few, "none", false},
		"many non-zeros":               {[]int{1433, 16, 7}, 0, many, "auto", false},
		"many non-zeros, all":          {[]int{1433, 16, 7}, 0, many, "all", true},
		"many non-zeros, most dropped": {[]int{1433, 16, 7}, 0.6, many, "auto", true},
		"dense, narrowing":             {[]int{128, 16, 7}, 0.5, Load{Vertices: 1000, Edges: 5000}, "auto", false},
		"dense, gathered first":        {[]int{128, 128, 7}, 0.5, Load{Vertices: 1000, Edges: 5000}, "auto", true},
	} {
		s := Spec{Kind: "gcn", Dims: tc.dims, InputDropout: tc.drop}
		if s.Choose(tc.load, Choices{Order: "auto", CacheInput: "off", Ghosts: tc.ghosts}); (s.LocalLayers > 0) != tc.want {
			t.Errorf("%s: computed in %d layers", name, s.LocalLayers)
		}
	}
}

// A rank can compute its ghosts' rows of the first layer that gathers in an epoch, if no layer
// before it needs other vertices.
func TestGhostLayer(t *testing.T) {
	for name, tc := range map[string]struct {
		spec  Spec
		cache string
		want  int
	}{
		"gcn":              {Spec{Kind: "gcn", Dims: []int{9, 8, 3}}, "off", 0},
		"gcn, input kept":  {Spec{Kind: "gcn", Dims: []int{9, 8, 3}}, "on", 1},
		"one layer, kept":  {Spec{Kind: "gcn", Dims: []int{9, 3}}, "on", -1},
		"appnp":            {Spec{Kind: "appnp", Dims: []int{9, 8, 3, 3, 3}, Design: Design{Hops: 2, Alpha: 0.1}}, "off", 2},
		"gcnii":            {Spec{Kind: "gcnii", Dims: []int{9, 8, 8, 8, 3}, Design: Design{Alpha: 0.1, Theta: 0.5}}, "off", 2},
		"sgc, powers kept": {Spec{Kind: "sgc", Dims: []int{9, 3, 3, 3}}, "on", -1},
		"layer norm":       {Spec{Kind: "gcn", Dims: []int{9, 8, 8, 8, 3}, Design: Design{Norm: "layer"}}, "on", 3},
		"batch norm":       {Spec{Kind: "gcn", Dims: []int{9, 8, 8, 8, 3}, Design: Design{Norm: "batch"}}, "on", -1},
		"batch norm, sent": {Spec{Kind: "gcn", Dims: []int{9, 8, 8, 8, 3}, Design: Design{Norm: "batch"}}, "off", 0},
		"gatv2":            {Spec{Kind: "gatv2", Dims: []int{9, 8, 3}}, "off", 0},
		"mlp":              {Spec{Kind: "mlp", Dims: []int{9, 8, 3}}, "off", -1},
	} {
		s := tc.spec
		s.Choose(Load{Vertices: 1000, Edges: 5000, CacheFits: true}, Choices{Order: "auto", CacheInput: tc.cache, Ghosts: "layers:1"})
		if got := s.GhostLayer(); got != tc.want {
			t.Errorf("%s: layer %d, want %d", name, got, tc.want)
		}
	}
}

// All layers that gather may have computed ghosts, except after sums over all vertices.
func TestMostLocalLayers(t *testing.T) {
	hidden := []int{9, 8, 8, 8, 8, 8, 3} // with tails: three layers
	for name, tc := range map[string]struct {
		spec Spec
		want int
	}{
		"gat":          {Spec{Kind: "gat", Dims: []int{9, 8, 8, 3}}, 3},
		"gatv2":        {Spec{Kind: "gatv2", Dims: []int{9, 8, 8, 3}}, 3},
		"sage-pool":    {Spec{Kind: "sage-pool", Dims: []int{9, 8, 8, 3}}, 3},
		"appnp":        {Spec{Kind: "appnp", Dims: []int{9, 8, 3, 3, 3}, Design: Design{Hops: 2, Alpha: 0.1}}, 2},
		"sign":         {Spec{Kind: "sign", Dims: []int{9, 8, 8, 8, 8, 3}, Design: Design{Hops: 3}}, 3},
		"residual":     {Spec{Kind: "gat", Dims: hidden[:6], Design: Design{Residual: "add"}}, 3},
		"layer norm":   {Spec{Kind: "gat", Dims: append(hidden, 3), Design: Design{Norm: "layer"}}, 3},
		"batch norm":   {Spec{Kind: "gat", Dims: append(hidden, 3), Design: Design{Norm: "batch"}}, 1},
		"batch, later": {Spec{Kind: "gcn", Dims: append(hidden, 3), Design: Design{Norm: "pair"}, CacheInput: true}, 0},
		"mlp":          {Spec{Kind: "mlp", Dims: []int{9, 8, 3}}, 0},
	} {
		s := tc.spec
		s.Orders = make([]Order, s.Layers())
		if got := s.MostLocalLayers(); got != tc.want {
			t.Errorf("%s: %d of layers %v, want %d", name, got, s.GatherLayers(), tc.want)
		}
	}
}

// Weights are laid out layer after layer, each matrix before its bias, without
// gaps.
func TestParams(t *testing.T) {
	s := Spec{Kind: "gcn", Dims: []int{5, 4, 3}}
	want := []Param{
		{Name: "layers.0.weight", Layer: 0, Rows: 5, Cols: 4, Offset: 0, Features: true},
		{Name: "layers.0.bias", Layer: 0, Rows: 1, Cols: 4, Offset: 20, Bias: true},
		{Name: "layers.1.weight", Layer: 1, Rows: 4, Cols: 3, Offset: 24},
		{Name: "layers.1.bias", Layer: 1, Rows: 1, Cols: 3, Offset: 36, Bias: true},
	}
	if d := cmp.Diff(want, s.Params()); d != "" {
		t.Error(d)
	}
	if r := s.LayerRanges()[1]; r != (Range{24, 39}) || s.NumWeights() != 39 {
		t.Errorf("layer 1 is %v of %d", r, s.NumWeights())
	}
	flat := make([]float32, 39)
	for i := range flat {
		flat[i] = 9
	}
	s.Initialize(flat, "xavier", 1)
	for _, p := range s.Params() {
		for i, w := range p.Of(flat) {
			if p.Bias != (w == 0) || w == 9 {
				t.Errorf("%s[%d] = %v", p.Name, i, w)
			}
		}
	}
}

// Networks in which unit rows or a pooling perceptron are invalid are refused. A network that
// ends with unit rows is accepted.
func TestCheckNormsAndPools(t *testing.T) {
	norm := Design{Norm: l2}
	for _, c := range []struct {
		spec Spec
		ok   bool
	}{
		{Spec{Kind: "sage", Dims: []int{5, 3, 3}, Design: norm}, true},
		{Spec{Kind: "sage-pool", Dims: []int{5, 4, 4, 4, 3, 3}, Design: Design{Norm: l2, PoolHidden: 7}}, true},
		{Spec{Kind: "sage", Dims: []int{5, 3}, Design: norm}, false},
		{Spec{Kind: "sage", Dims: []int{5, 4, 4, 3}, Design: norm}, false},
		{Spec{Kind: "sage", Dims: []int{5, 4, 3}, Design: norm}, false}, // the rows would change their width
		{Spec{Kind: "gat", Dims: []int{5, 3, 3}, Design: norm}, false},
		{Spec{Kind: "sgc", Dims: []int{5, 3, 3}, Design: norm}, false},
		{Spec{Kind: "sage-pool", Dims: []int{5, 3}, Design: Design{PoolHidden: -1}}, false},
		{Spec{Kind: "sage-max", Dims: []int{5, 3}, Design: Design{PoolHidden: 4}}, false},
	} {
		if err := c.spec.Check(); (err == nil) != c.ok {
			t.Errorf("%s %v %+v: %v", c.spec.Kind, c.spec.Dims, c.spec.Design, err)
		}
	}
	s := Spec{Kind: "sage", Design: norm}
	if s.Dims = s.Widths(2, 9, 4, 3); s.Top() != s.Layers()-2 || s.Dims[s.Top()] != 4 {
		t.Errorf("embeddings are the input of layer %d of widths %v", s.Top(), s.Dims)
	}
}
