package pytorch

import (
	"maps"
	"slices"
	"strings"

	"siafu/internal/fault"
	"siafu/internal/safetensors"
	"siafu/kernels/model"
)

// state is a state dict on its way to siafu's names.
type state struct {
	path    string
	spec    model.Spec
	inOrder bool
	shapes  map[string][]int    // of all tensors, by their names
	jump    string              // the module that is the product of jumping knowledge, "" without
	modules map[string]*modules // by the kinds of parts that they become
}

func newState(path string, list []safetensors.Tensor, s model.Spec, inOrder bool) *state {
	f := &state{path: path, spec: s, inOrder: inOrder, shapes: map[string][]int{}, modules: map[string]*modules{}}
	for _, t := range list {
		f.shapes[t.Name] = t.Shape
	}
	if s.Design.Jumping != "" {
		f.findJump(list)
	}
	return f
}

// modules are those of PyTorch that become parts of one kind.
type modules struct {
	order []string // their names, as the file has them
	found map[string][]safetensors.Tensor
}

func (f *state) bad(format string, args ...any) *fault.Error {
	return fault.New(fault.Data, "init", f.path, format, args...)
}

// put makes a tensor one of a module that becomes a part of a kind.
func (f *state) put(kind, module string, p model.TorchTensor, t safetensors.Tensor) error {
	m := f.modules[kind]
	if m == nil {
		m = &modules{found: map[string][]safetensors.Tensor{}}
		f.modules[kind] = m
	}
	if _, ok := m.found[module]; !ok {
		m.order = append(m.order, module)
	}
	of, err := convert(p, t)
	if err != nil {
		return f.bad("%v", err)
	}
	m.found[module] = append(m.found[module], of...)
	return nil
}

// What stands behind convolutions is known by its shape, since it may be called anything: a
// row as weight and a bias are those of a normalisation, one number as weight is a PReLU's.
// The product of jumping knowledge is the last matrix with a bias. A projection is a matrix without bias.
var (
	normTensors = model.StateDict{"weight": {Weight: "norm.weight"}, "bias": {Weight: "norm.bias"},
		"running_mean": {Weight: "norm.running_mean"}, "running_var": {Weight: "norm.running_var"}}
	preluTensors = model.StateDict{"weight": {Weight: "activation.weight"}}
	jumpTensors  = model.LinearTensors("")
)

// behind says of a tensor of what stands behind convolutions which module it is of, and of
// which kind of part this becomes, "" of none.
func (f *state) behind(t safetensors.Tensor) (kind, module string, p model.TorchTensor) {
	module, name := cutName(t.Name)
	weight, bias := f.shapes[join(module, "weight")], f.shapes[join(module, "bias")]
	switch row := len(weight) == 1; {
	case module == f.jump && jumpTensors[name].Weight != "" && module != "":
		return f.jumpKind(), module, jumpTensors[name]
	case f.projects(t, module):
		return "linear", module, jumpTensors[name]
	case row && len(bias) == 1 && normTensors[name].Weight != "":
		return "norm", module, normTensors[name]
	case row && bias == nil && weight[0] == 1 && name == "weight":
		return "tail", module, preluTensors[name]
	}
	return "", module, p
}

// projects reports whether a tensor is the matrix of a projection.
func (f *state) projects(t safetensors.Tensor, module string) bool {
	layer, _, ok := split(t.Name, model.KindOf(f.spec.Kind).StateDict)
	return f.spec.Design.Project && t.Name == join(module, "weight") && len(t.Shape) == 2 && (!ok || layer == module) &&
		f.shapes[join(module, "bias")] == nil
}

// jumpKind returns the kind of part that the product of jumping knowledge is.
func (f *state) jumpKind() string { return f.spec.Parts()[f.spec.Layers()-1].Kind }

// findJump finds the module that this product is.
func (f *state) findJump(list []safetensors.Tensor) {
	for _, t := range list {
		module, name := cutName(t.Name)
		is := name == "weight" && len(t.Shape) == 2 && len(f.shapes[join(module, "bias")]) == 1
		if is && (f.inOrder || f.jump == "" || natural(f.jump, module) < 0) {
			f.jump = module
		}
	}
}

// named are all tensors under siafu's names, in the order of its parts.
func (f *state) named() (out []safetensors.Tensor, err error) {
	parts, wanted := f.spec.Parts(), map[string]int{}
	for _, p := range parts {
		wanted[p.Kind]++
	}
	for _, kind := range slices.Sorted(maps.Keys(f.modules)) {
		if err := f.modules[kind].lineUp(f, kind, wanted[kind]); err != nil {
			return nil, err
		}
	}
	for _, p := range parts {
		m := f.modules[p.Kind]
		if m == nil || len(m.order) == 0 {
			continue
		}
		list, err := withoutCopies(m.found[m.order[0]])
		if err != nil {
			return nil, f.bad("the layer %q: %v", m.order[0], err).Then("train with one weight matrix a layer")
		}
		for _, t := range merged(list) {
			t.Name = p.Prefix + "." + t.Name
			out = append(out, t)
		}
		m.order = m.order[1:]
	}
	return out, nil
}

// lineUp orders modules that become so many parts of a kind.
func (m *modules) lineUp(f *state, kind string, parts int) error {
	if !f.inOrder {
		slices.SortFunc(m.order, natural)
	}
	d := f.spec.Design
	if kind == "tail" && d.Activation == "prelu" && len(m.order) == 1 { // one that all layers share
		m.order = slices.Repeat(m.order, parts)
	}
	if len(m.order) != parts || kind == "norm" && d.Norm == "pair" || kind == "tail" && d.Activation != "prelu" {
		return f.other(kind, m.order, parts)
	}
	return nil
}

// other says that the network has another number of modules than the file.
func (f *state) other(kind string, order []string, want int) error {
	switch d := f.spec.Design; {
	case kind == "norm" && d.Norm != "layer" && d.Norm != "batch":
		return f.bad("it has the normalisations %q, but the network has no normalisation with weights", order).
			Then("train with --norm batch or --norm layer")
	case kind == "norm":
		return f.bad("it has the normalisations %q, but the network has %d", order, want).
			Then("train with the layers that the file was made with")
	case kind == "tail" && d.Activation != "prelu":
		return f.bad("it has the learned slopes %q, but the network has none", order).Then("train with --activation prelu")
	case kind == "tail":
		return f.bad("it has the learned slopes %q, but the network has %d", order, want).
			Then("use a file with one slope, or one for each hidden layer")
	case kind == "linear" && d.Project:
		return f.bad("it has the projections %q, but the network has %d", order, want).
			Then("use one Linear without bias for the features of all kinds, in the order of the dataset's columns")
	case kind != f.spec.Kind:
		return f.bad("it has the layers %q, but the network has %d of this kind", order, want).
			Then("train with the layers and the --jumping that the file was made with")
	}
	return f.bad("it has the layers %q, but the network has %d", order, want).Then("train with --layers %d", len(order))
}

// cutName takes the last part of a name off, and join puts it on again.
func cutName(name string) (module, last string) {
	i := strings.LastIndexByte(name, '.')
	return name[:max(i, 0)], name[i+1:]
}

func join(module, last string) string {
	if module == "" {
		return last
	}
	return module + "." + last
}
