package pytorch

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/pickle"
	"siafu/internal/safetensors"
	"siafu/kernels/model"
)

// Read reads a file of weights: safetensors, or a state dict that torch.save has written,
// which has no metadata. Tensors come in the order of the file, which is that of a network's
// layers in a state dict alone. Faults have kind Missing, Data or IO.
func Read(path string) ([]safetensors.Tensor, map[string]string, error) {
	var begin [4]byte
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fault.System("read model", path, err)
	}
	n, _ := io.ReadFull(f, begin[:])
	f.Close()
	if !pickle.IsTorch(begin[:n]) {
		return safetensors.Read(path)
	}
	list, err := readStateDict(path)
	return list, nil, err
}

// readStateDict reads the tensors of a dict that torch.save has written.
func readStateDict(path string) ([]safetensors.Tensor, error) {
	f, err := pickle.OpenTorch(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d, _ := f.Value.(*pickle.Dict)
	if o, ok := f.Value.(*pickle.Object); ok && o.Class == "collections OrderedDict" {
		d = &o.Items
	}
	if d == nil {
		return nil, f.Bad("it contains %s instead of a state dict", pickle.Describe(f.Value)).
			Then("save the weights: torch.save(model.state_dict(), FILE)")
	}
	var list []safetensors.Tensor
	for i, v := range d.Values {
		name := pickle.Text(d.Keys[i])
		if !pickle.IsTensor(v) {
			return nil, f.Bad("%q is %s instead of a tensor", name, pickle.Describe(v)).
				Then("save the weights: torch.save(model.state_dict(), FILE)")
		}
		a, err := f.Tensor(v, name)
		if err != nil {
			return nil, err
		}
		data, err := a.Float32s()
		if err != nil {
			return nil, err
		}
		list = append(list, safetensors.Tensor{Name: name, Shape: slices.Clone(a.Shape), Data: slices.Clone(data)})
	}
	return list, nil
}

// Weights returns the tensors of a file under siafu's names: those of PyTorch Geometric's
// layers, each of which becomes the next layer of its sort of s, in the order of the file if
// inOrder, else by their names, numbers by their value. Tensors under siafu's own names stay,
// and those of the network that WriteScript exports get theirs back. Layers of PyTorch Geometric
// with another formula on the graph m are refused; nil: any graph.
func Weights(path string, list []safetensors.Tensor, s model.Spec, m *graph.Meta, inOrder bool) ([]safetensors.Tensor, error) {
	if renamed, ok, err := exported(path, list, s); ok {
		return renamed, err
	}
	known := model.KindOf(s.Kind).StateDict
	if own(list, s) || known == nil {
		return list, nil
	}
	if err := suits(path, list, s, m); err != nil {
		return nil, err
	}
	f := newState(path, list, s, inOrder)
	for _, t := range list {
		if strings.HasSuffix("."+t.Name, ".num_batches_tracked") {
			continue
		}
		kind, module, p := f.behind(t)
		if kind == "" {
			var ok bool
			if module, p, ok = split(t.Name, known); !ok {
				return nil, f.bad("tensor %q does not belong to a layer of %s", t.Name, s.Kind).
					Then("expected after the name of a layer: %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			}
			kind = cmp.Or(p.Part, s.Kind)
		}
		if err := f.put(kind, module, p, t); err != nil {
			return nil, err
		}
	}
	return f.named()
}

// own reports whether tensors have siafu's names. A Linear of PyTorch may be called project, too.
func own(list []safetensors.Tensor, s model.Spec) bool {
	names := map[string]bool{}
	for _, t := range list {
		names[t.Name] = true
	}
	for _, p := range s.Params() {
		if names[p.Name] && !strings.HasPrefix(p.Name, "project.") {
			return true
		}
	}
	return false
}

// split takes the name of a tensor apart: of the layer, and what the tensor is in it.
func split(name string, known model.StateDict) (layer string, p model.TorchTensor, ok bool) {
	longest := -1
	for end, of := range known {
		if head, is := strings.CutSuffix("."+name, "."+end); is && len(end) > longest {
			layer, p, ok, longest = strings.TrimPrefix(head, "."), of, true, len(end)
		}
	}
	return layer, p, ok
}

// convert returns the weights of a tensor: two if it has another one too, none for a number
// that is 0.
func convert(p model.TorchTensor, t safetensors.Tensor) ([]safetensors.Tensor, error) {
	switch {
	case p.Weight == "" && (len(t.Data) != 1 || t.Data[0] != 0):
		return nil, fmt.Errorf("%q is %v, but siafu needs 0", t.Name, t.Data[:min(len(t.Data), 3)])
	case p.Weight == "":
		return nil, nil
	case p.Flat && len(t.Shape) >= 3:
		rows, cols := 1, t.Shape[len(t.Shape)-1]
		for _, n := range t.Shape[:len(t.Shape)-1] {
			rows *= n
		}
		t.Shape = []int{rows, cols}
	case p.Transpose && len(t.Shape) == 2:
		rows, cols := t.Shape[0], t.Shape[1]
		turned := make([]float32, len(t.Data))
		for r := range rows {
			for c := range cols {
				turned[c*rows+r] = t.Data[r*cols+c]
			}
		}
		t.Shape, t.Data = []int{cols, rows}, turned
	case p.Flat || p.Transpose:
		return nil, fmt.Errorf("tensor %q has shape %v", t.Name, t.Shape)
	}
	t.Name = p.Weight
	if p.Copy {
		t.Name = copied + p.Weight
	}
	list := []safetensors.Tensor{t}
	if p.Also != "" {
		t.Name = p.Also
		list = append(list, t)
	}
	return list, nil
}

// copied begins the name of a tensor that must equal the tensor with the rest of the name.
const copied = "copy of "

// withoutCopies removes tensors that equal another one.
func withoutCopies(list []safetensors.Tensor) ([]safetensors.Tensor, error) {
	var out []safetensors.Tensor
	for _, t := range list {
		name, ok := strings.CutPrefix(t.Name, copied)
		if !ok {
			out = append(out, t)
		} else if !slices.ContainsFunc(list, func(o safetensors.Tensor) bool { return o.Name == name && slices.Equal(o.Data, t.Data) }) {
			return nil, errors.New("sources and targets have different weights (lin_src, lin_dst), as between two kinds of vertices")
		}
	}
	return out, nil
}

// merged adds tensors of one name; where one is of several heads and the other of their
// mean, it adds their mean.
func merged(list []safetensors.Tensor) (out []safetensors.Tensor) {
	for _, t := range list {
		i := slices.IndexFunc(out, func(o safetensors.Tensor) bool { return o.Name == t.Name })
		if i < 0 {
			out = append(out, t)
			continue
		}
		sum, other := out[i], t
		if len(other.Data) < len(sum.Data) {
			sum, other = other, sum
		}
		sum.Data = slices.Clone(sum.Data)
		heads := len(other.Data) / max(len(sum.Data), 1)
		for j, v := range other.Data[:heads*len(sum.Data)] {
			sum.Data[j%len(sum.Data)] += v / float32(heads)
		}
		out[i] = sum
	}
	return out
}

// natural compares names by their parts between points, numbers at the end of a part by
// their values: conv2 comes before conv10.
func natural(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
		textX, numberX := cut(x)
		textY, numberY := cut(y)
		return cmp.Or(cmp.Compare(textX, textY), cmp.Compare(numberX, numberY))
	})
}

func cut(s string) (text string, number int) {
	text = strings.TrimRight(s, "0123456789")
	number, err := strconv.Atoi(s[len(text):])
	if err != nil {
		number = -1
	}
	return text, number
}
