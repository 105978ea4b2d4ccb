package model_test

import (
	"hash/fnv"
	"math"
	"slices"
	"testing"

	"siafu/internal/mapped"
	"siafu/kernels/model"
)

// initialWeight returns the first weights of a network of three layers.
func initialWeight(kind, initializer string) (model.Spec, []float32) {
	s := model.Spec{Kind: kind, Dims: []int{7, 12, 12, 5}, Heads: 3, OutputHeads: 2}
	flat := make([]float32, s.NumWeights())
	for i := range flat {
		flat[i] = float32(math.NaN())
	}
	s.Initialize(flat, initializer, 1<<40+9)
	return s, flat
}

// Later versions must reproduce a run: first weights keep their bits.
func TestInitializersKeepTheirBits(t *testing.T) {
	for _, tc := range []struct {
		kind, initializer string
		want              uint64
	}{
		{"gcn", "xavier", 0x1f36bf92723c158f},
		{"gcn", "he", 0xabf40bb068ee11e7},
		{"sage", "xavier", 0x7ea15db795ae803c},
		{"sage", "he", 0x4dbbdf94bbc28c41},
		{"gin", "xavier", 0x13d7c22f5f8e873a},
		{"gin", "he", 0xe5d7b8c392f5b3da},
		{"gat", "xavier", 0xfd945e0f9b15e2c0},
		{"gat", "he", 0xc802cdd892618652},
		{"mlp", "xavier", 0x1f36bf92723c158f},
		{"mlp", "he", 0xabf40bb068ee11e7},
	} {
		_, flat := initialWeight(tc.kind, tc.initializer)
		h := fnv.New64a()
		h.Write(mapped.Bytes(flat))
		if h.Sum64() != tc.want {
			t.Errorf("%s of %s: %#x, want %#x", tc.initializer, tc.kind, h.Sum64(), tc.want)
		}
	}
}

// Matrix and bias are within ±1/sqrt(inputs) and spread over it, with the inputs of their
// common product.
func TestTorchBounds(t *testing.T) {
	inputs := func(p model.Param) float64 {
		if p.Layer > 0 || p.Name == "layers.0.mlp.weight" || p.Name == "layers.0.mlp.bias" {
			return 12
		}
		return 7
	}
	for _, kind := range model.Kinds() {
		s, flat := initialWeight(kind, "torch")
		for _, p := range s.Params() {
			n := inputs(p)
			if kind == "sgc" {
				n = 7 // of the only product
			}
			if kind == "gin" && p.Layer == 2 && p.Name != "layers.2.weight" && p.Name != "layers.2.bias" {
				n = 5 // the width inside of the last perceptron
			}
			bound, least, most := 1/math.Sqrt(n), math.Inf(1), math.Inf(-1)
			for _, w := range p.Of(flat) {
				least, most = min(least, float64(w)), max(most, float64(w))
			}
			if least < -bound || most > bound || most-least < bound/2 {
				t.Errorf("%s %s: %d weights from %.3f to %.3f, want ±%.3f", kind, p.Name, p.Len(), least, most, bound)
			}
		}
	}
}

// No two weights of a network use the same random numbers.
func TestFirstWeightsDiffer(t *testing.T) {
	for _, kind := range model.Kinds() {
		s, flat := initialWeight(kind, "torch")
		seen := map[float32]string{} // by a ratio that is independent of bounds
		for _, p := range s.Params() {
			ratio := p.Of(flat)[1] / p.Of(flat)[0]
			if other, ok := seen[ratio]; ok {
				t.Errorf("%s: %s begins as %s does", kind, p.Name, other)
			}
			seen[ratio] = p.Name
		}
	}
}

// The weights of the logits are a tenth of torch's, all others equal torch's.
func TestSmallLogits(t *testing.T) {
	logits := map[string][]string{
		"gcn": {"2.weight", "2.bias"}, "sage": {"2.weight", "2.self.weight", "2.bias"}, "sage-max": {"2.weight", "2.self.weight", "2.bias"},
		"sage-pool": {"2.self.weight", "2.weight", "2.bias"}, "gin": {"2.mlp.weight", "2.mlp.bias"},
		"gat":   {"2.weight", "2.source", "2.target", "2.bias"},
		"gatv2": {"2.weight", "2.target.weight", "2.attention", "2.target.bias", "2.bias"}, "mlp": {"2.weight", "2.bias"},
		"gcnii": {"2.weight", "2.bias"}, "appnp": {"2.weight", "2.bias"}, "sgc": {"0.weight", "2.bias"}, "sign": {"2.weight", "2.bias"},
	}
	for _, kind := range model.Kinds() {
		s, flat := initialWeight(kind, "small-logits")
		_, torch := initialWeight(kind, "torch")
		small := logits[kind]
		if small == nil { // a network that is not in the map must follow the rule of docs/models.md
			small = lastProduct(s)
		}
		for _, p := range s.Params() {
			want := slices.Clone(p.Of(torch))
			if slices.Contains(small, p.Name[len("layers."):]) {
				for i := range want {
					want[i] *= 0.1
				}
			}
			if !slices.Equal(p.Of(flat), want) {
				t.Errorf("%s %s: %v, want %v", kind, p.Name, p.Of(flat), want)
			}
		}
	}
}

// lastProduct names the last matrices up to a bias, and this bias, as the map above does.
func lastProduct(s model.Spec) (names []string) {
	params := s.Params()
	for i := len(params) - 1; i >= 0 && (len(names) == 0 || !params[i].Bias); i-- {
		names = append(names, params[i].Name[len("layers."):])
	}
	return names
}

// The initialiser of each kind of network exists, and auto gives the same weights.
func TestAutoInitializer(t *testing.T) {
	for _, kind := range model.Kinds() {
		name := model.Spec{Kind: kind}.Initializer(model.Auto)
		if !slices.Contains(model.Initializers(), name) {
			t.Errorf("%s begins as %q", kind, name)
		}
		_, want := initialWeight(kind, name)
		if _, got := initialWeight(kind, model.Auto); !slices.Equal(got, want) {
			t.Errorf("%s: auto is not %s", kind, name)
		}
	}
}
