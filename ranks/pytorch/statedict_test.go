package pytorch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/safetensors"
	"siafu/kernels/model"
)

func tensor(name string, shape ...int) safetensors.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	t := safetensors.Tensor{Name: name, Shape: shape, Data: make([]float32, n)}
	for i := range t.Data {
		t.Data[i] = float32(i + 1)
	}
	return t
}

// TestWeights: layers of PyTorch Geometric become siafu's in the order of their names, or
// of a state dict; matrices are transposed where PyTorch's are.
func TestWeights(t *testing.T) {
	gcn := model.Spec{Kind: "gcn", Dims: []int{3, 2, 4}}
	for _, c := range []struct {
		name    string
		spec    model.Spec
		list    []safetensors.Tensor
		inOrder bool
		want    string
	}{
		{"by name", gcn, []safetensors.Tensor{tensor("conv10.bias", 4), tensor("conv10.lin.weight", 4, 2), tensor("conv2.bias", 2),
			tensor("conv2.lin.weight", 2, 3)}, false,
			"layers.0.bias [2] [1 2]; layers.0.weight [3 2] [1 4 2 5 3 6]; layers.1.bias [4] [1 2 3 4]; " +
				"layers.1.weight [2 4] [1 3 5 7 2 4 6 8]"},
		{"in order", gcn, []safetensors.Tensor{tensor("input.weight", 3, 2), tensor("input.bias", 2),
			tensor("a.weight", 2, 4), tensor("a.bias", 4)}, true,
			"layers.0.weight [3 2] [1 2 3 4 5 6]; layers.0.bias [2] [1 2]; layers.1.weight [2 4] [1 2 3 4 5 6 7 8]; " +
				"layers.1.bias [4] [1 2 3 4]"},
		{"attention", model.Spec{Kind: "gat", Dims: []int{1, 2}, OutputHeads: 2}, []safetensors.Tensor{tensor("lin_src.weight", 4, 1),
			tensor("att_src", 1, 2, 2), tensor("att_dst", 1, 2, 2), tensor("bias", 2)}, true,
			"layers.0.weight [1 4] [1 2 3 4]; layers.0.source [2 2] [1 2 3 4]; layers.0.target [2 2] [1 2 3 4]; layers.0.bias [2] [1 2]"},
		{"a perceptron before the maximum", model.Spec{Kind: "sage-pool", Dims: []int{2, 3}},
			[]safetensors.Tensor{tensor("convs.0.lin.weight", 2, 2), tensor("convs.0.lin.bias", 2), tensor("convs.0.lin_l.weight", 3, 2),
				tensor("convs.0.lin_l.bias", 3), tensor("convs.0.lin_r.weight", 3, 2)}, false,
			"layers.0.pool.weight [2 2] [1 3 2 4]; layers.0.pool.bias [2] [1 2]; layers.0.weight [2 3] [1 3 5 2 4 6]; layers.0.bias [3] " +
				"[1 2 3]; layers.0.self.weight [2 3] [1 3 5 2 4 6]"},
		{"as BasicGNN has them", model.Spec{Kind: "gcn", Dims: []int{1, 2, 2, 2, 2, 2, 2, 2, 3},
			Design: model.Design{Norm: "batch", Activation: "prelu", Jumping: "max"}}, []safetensors.Tensor{
			tensor("act.weight", 1), tensor("convs.0.lin.weight", 2, 1), tensor("convs.0.bias", 2),
			tensor("convs.1.lin.weight", 2, 2), tensor("convs.1.bias", 2),
			tensor("lin.weight", 3, 2), tensor("lin.bias", 3),
			tensor("norms.0.module.weight", 2), tensor("norms.0.module.bias", 2), tensor("norms.0.module.running_mean", 2),
			tensor("norms.0.module.num_batches_tracked"),
			tensor("norms.1.module.weight", 2), tensor("norms.1.module.bias", 2), tensor("norms.1.module.running_var", 2)}, false,
			"layers.0.weight [1 2] [1 2]; layers.0.bias [2] [1 2]; layers.0.norm.weight [2] [1 2]; layers.0.norm.bias [2] [1 2]; " +
				"layers.0.norm.running_mean [2] [1 2]; layers.0.activation.weight [1] [1]; " +
				"layers.1.weight [2 2] [1 3 2 4]; layers.1.bias [2] [1 2]; layers.1.norm.weight [2] [1 2]; layers.1.norm.bias [2] [1 2]; " +
				"layers.1.norm.running_var [2] [1 2]; layers.1.activation.weight [1] [1]; " +
				"layers.2.weight [2 3] [1 3 5 2 4 6]; layers.2.bias [3] [1 2 3]"},
		{"biases that are added", model.Spec{Kind: "gatv2", Dims: []int{1, 2}, OutputHeads: 2},
			[]safetensors.Tensor{tensor("att", 1, 2, 2), tensor("bias", 2), tensor("lin_l.weight", 4, 1), tensor("lin_l.bias", 4),
				tensor("lin_r.weight", 4, 1), tensor("lin_r.bias", 4)}, true,
			"layers.0.attention [2 2] [1 2 3 4]; layers.0.bias [2] [3 5]; layers.0.weight [1 4] [1 2 3 4]; layers.0.target.bias [4] [2 4 " +
				"6 8]; layers.0.target.weight [1 4] [1 2 3 4]"},
		{"exported", model.Spec{Kind: "sage", Dims: []int{2, 1}}, []safetensors.Tensor{tensor("weights.layers_0_bias", 1),
			tensor("weights.layers_0_self_weight", 2, 1), tensor("weights.layers_0_weight", 2, 1)}, true,
			"layers.0.bias [1] [1]; layers.0.self.weight [2 1] [1 2]; layers.0.weight [2 1] [1 2]"},
		{"matrices of relations", model.Spec{Kind: "rgcn", Dims: []int{3, 1, 2}, Design: model.Design{Project: true, Relations: 2}},
			[]safetensors.Tensor{tensor("project.weight", 1, 3), tensor("conv.weight", 2, 1, 2), tensor("conv.root", 1, 2),
				tensor("conv.bias", 2)},
			false, "project.weight [3 1] [1 2 3]; layers.0.weight [2 2] [1 2 3 4]; layers.0.basis [2 2] [1 2 3 4]; " +
				"layers.0.self.weight [1 2] [1 2]; layers.0.bias [2] [1 2]"},
		{"blocks of relations", model.Spec{Kind: "rgcn", Dims: []int{2, 2}, Design: model.Design{Relations: 1, Blocks: 2}},
			[]safetensors.Tensor{tensor("weight", 1, 2, 1, 1), tensor("root", 2, 2), tensor("bias", 2)}, false,
			"layers.0.weight [2 1] [1 2]; layers.0.basis [2 1] [1 2]; layers.0.self.weight [2 2] [1 2 3 4]; layers.0.bias [2] [1 2]"},
		{"a projection before GCNConv", model.Spec{Kind: "gcn", Dims: []int{2, 1, 2}, Design: model.Design{Project: true}},
			[]safetensors.Tensor{tensor("first.weight", 1, 2), tensor("conv.lin.weight", 2, 1), tensor("conv.bias", 2)}, false,
			"project.weight [2 1] [1 2]; layers.0.weight [1 2] [1 2]; layers.0.bias [2] [1 2]"},
		{"siafu's own", gcn, []safetensors.Tensor{tensor("layers.0.weight", 3, 2)}, false, "layers.0.weight [3 2] [1 2 3 4 5 6]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, err := Weights("x.pt", c.list, c.spec, nil, c.inOrder)
			var got []string
			for _, w := range list {
				got = append(got, fmt.Sprint(w.Name, " ", w.Shape, " ", w.Data))
			}
			if err != nil || strings.Join(got, "; ") != c.want {
				t.Errorf("%v, got  %s\nwant %s", err, strings.Join(got, "; "), c.want)
			}
		})
	}
	normed := model.Spec{Kind: "gcn", Dims: []int{3, 2, 2, 2, 4}, Design: model.Design{Norm: "layer"}}
	gin := model.Spec{Kind: "gin", Dims: []int{3, 2}}
	rgcn := model.Spec{Kind: "rgcn", Dims: []int{3, 2, 2}, Design: model.Design{Project: true, Relations: 2}}
	for _, c := range []struct {
		spec model.Spec
		list []safetensors.Tensor
		want string
	}{
		{gcn, []safetensors.Tensor{tensor("conv1.lin.weight", 2, 3), tensor("bn1.running_mean", 2)},
			`tensor "bn1.running_mean" does not belong to a layer of gcn; expected after the name of a layer: bias, lin.weight, weight`},
		{gcn, []safetensors.Tensor{tensor("conv1.lin.weight", 2, 3), tensor("conv1.bias", 2)},
			`the layers ["conv1"], but the network has 2; train with --layers 1`},
		{gcn, []safetensors.Tensor{tensor("conv1.lin.weight", 6)}, `tensor "conv1.lin.weight" has shape [6]`},
		{gcn, []safetensors.Tensor{tensor("conv1.lin.weight", 2, 3), tensor("conv2.lin.weight", 2, 3),
			tensor("bn1.weight", 2), tensor("bn1.bias", 2)},
			`the normalisations ["bn1"], but the network has no normalisation with weights; train with --norm batch or --norm layer`},
		{gcn, []safetensors.Tensor{tensor("act.weight", 1)},
			`the learned slopes ["act"], but the network has none; train with --activation prelu`},
		{normed, []safetensors.Tensor{tensor("bn1.weight", 2), tensor("bn1.bias", 2), tensor("bn2.weight", 2), tensor("bn2.bias", 2)},
			`the normalisations ["bn1" "bn2"], but the network has 1`},
		{gcn, []safetensors.Tensor{tensor("weights.layers_0_weight", 3, 2), tensor("head.weight", 2, 2)},
			`tensor "head.weight" is not a weight of an exported gcn; use the network that was exported`},
		{rgcn, []safetensors.Tensor{tensor("a.weight", 2, 3), tensor("b.weight", 2, 3), tensor("conv.bias", 2)},
			`the projections ["a" "b"], but the network has 1; use one Linear without bias`},
		{rgcn, []safetensors.Tensor{tensor("conv.weight", 2, 2, 2), tensor("conv.comp", 2, 2)}, "sums of bases, but the network has"},
		{rgcn, []safetensors.Tensor{tensor("conv.weight", 4, 2), tensor("conv.bias", 2)}, `tensor "conv.weight" has shape [4 2]`},
		{gin, []safetensors.Tensor{tensor("conv1.eps", 1)}, `"conv1.eps" is [1], but siafu needs 0`},
		{model.Spec{Kind: "gin", Dims: []int{3, 2, 2, 4}, Design: model.Design{Activation: "elu"}},
			[]safetensors.Tensor{tensor("convs.0.nn.lins.0.weight", 2, 3)}, "repeats the activation and the normalisation"},
		{model.Spec{Kind: "gin", Dims: []int{3, 2, 2, 2, 4}, Design: model.Design{Norm: "pair"}},
			[]safetensors.Tensor{tensor("convs.0.nn.lins.0.weight", 2, 3)}, "repeats the activation and the normalisation"},
	} {
		if _, err := Weights("x.pt", c.list, c.spec, nil, false); fault.KindOf(err) != fault.Data ||
			!strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// TestKnows: the script has every network, and a new one is refused until it has that.
func TestKnows(t *testing.T) {
	for _, kind := range model.Kinds() {
		if Knows(kind) != (model.KindOf(kind).StateDict != nil || kind == "sign") {
			t.Errorf("%s is known: %t", kind, Knows(kind))
		}
	}
	if Knows("example") {
		t.Error("a network that is not in the script is known")
	}
}

// Files that are no state dict are refused with a remedy. Package ranks tests files of PyTorch
// (TestPyTorch).
func TestRead(t *testing.T) {
	list, md, err := Read(filepath.Join("..", "..", "graph", "importers", "testdata", "dict.pt"))
	if fault.KindOf(err) != fault.Data || !strings.Contains(fmt.Sprint(err), "state_dict()") || list != nil || md != nil {
		t.Errorf("a graph as weights: %v", err)
	}
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("PK"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(path); fault.KindOf(err) != fault.Data {
		t.Errorf("two bytes: %v", err)
	}
	if _, _, err := Read(path + "y"); fault.KindOf(err) != fault.Missing {
		t.Errorf("no file: %v", err)
	}
	names := []string{"conv10", "conv2", "a.b", "a", "convs.11.x", "convs.2.x"}
	slices.SortFunc(names, natural)
	if want := []string{"a", "a.b", "conv2", "conv10", "convs.2.x", "convs.11.x"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}
