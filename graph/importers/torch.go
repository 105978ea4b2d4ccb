package importers

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/npy"
	"siafu/internal/pickle"
	"siafu/internal/torchfile"
)

var torchFormat = importer{
	entry: entry{Name: "torch", Help: "`.pt` with a `Data` of PyTorch Geometric"},
	read:  torch, recognises: isTorch, after: sayDirection, weights: true, features: true, named: pygEdgeArrays,
}

const opTorch = "import torch"

func isTorch(src string) bool {
	info, err := os.Stat(src)
	return err == nil && !info.IsDir() && (strings.HasSuffix(src, ".pt") || strings.HasSuffix(src, ".pth"))
}

// torch reads a file of torch.save with a Data of PyTorch Geometric, the pair of a Data and
// its slices of an InMemoryDataset, or a dict of such tensors.
func torch(k *keeper, o Options) (*graph.Content, error) {
	f, err := torchfile.Open(o.Src)
	if err != nil {
		return nil, err
	}
	k.closers = append(k.closers, f.Close)
	return torchGraph(k, o, f)
}

// torchGraph returns the dataset of an open file.
func torchGraph(k *keeper, o Options, f *torchfile.File) (*graph.Content, error) {
	t := &torchArrays{file: f, path: o.Src, got: map[string]bool{}}
	var err error
	if t.dict, err = t.data(f.Value, nesting); err != nil {
		return nil, err
	}
	c, err := pyg(k, o, opTorch, t)
	if err != nil {
		return nil, err
	}
	c.Source = "torch " + nameOf(o.Src)
	if rest := t.rest(); len(rest) > 0 {
		o.Log("path=%s left_out=%s", o.Src, strings.Join(rest, ","))
	}
	return c, nil
}

// torchArrays are the tensors of a dict.
type torchArrays struct {
	file *torchfile.File
	path string
	dict *pickle.Dict
	got  map[string]bool
}

// nesting is the maximum depth of lists and tuples around a graph. A list may contain itself.
const nesting = 4

// data finds the dict of tensors in a saved value.
func (t *torchArrays) data(v any, nesting int) (*pickle.Dict, error) {
	if nesting == 0 {
		return nil, t.unknown(v)
	}
	switch x := v.(type) {
	case *pickle.Dict:
		return x, nil
	case pickle.Tuple: // (data, slices), (dict, slices, class)
		if len(x) != 2 && len(x) != 3 {
			break
		}
		if err := t.oneGraph(x[1]); err != nil {
			return nil, err
		}
		return t.data(x[0], nesting-1)
	case *pickle.List:
		if len(x.Items) == 1 {
			return t.data(x.Items[0], nesting-1)
		}
		return nil, t.bad("it is a list of %d", len(x.Items)).Then("save one graph")
	case *pickle.Object:
		return t.object(x)
	}
	return nil, t.unknown(v)
}

// object finds the dict of tensors in an instance.
func (t *torchArrays) object(o *pickle.Object) (*pickle.Dict, error) {
	state, _ := o.State.(*pickle.Dict)
	switch _, class, _ := strings.Cut(string(o.Class), " "); {
	case class == "OrderedDict":
		return &o.Items, nil
	case class == "HeteroData":
		return nil, t.bad("it is a HeteroData with several vertex types").Then("save data.to_homogeneous() instead")
	case strings.HasPrefix(string(o.Class), "torch_geometric.") && state != nil:
		store, _ := state.Get("_store").(*pickle.Object) // since version 2
		if store == nil {
			return state, nil
		}
		inner, _ := store.State.(*pickle.Dict)
		if inner != nil {
			if mapping, ok := inner.Get("_mapping").(*pickle.Dict); ok {
				return mapping, nil
			}
		}
	}
	return nil, t.unknown(o)
}

func (t *torchArrays) bad(format string, args ...any) *fault.Error {
	return fault.New(fault.Data, opTorch, t.path, format, args...)
}

func (t *torchArrays) unknown(v any) error {
	return t.bad("it holds %s instead of a PyTorch Geometric Data", pickle.Describe(v)).
		Then("save the Data itself, or a dict of its tensors: torch.save(data.to_dict(), FILE)")
}

// oneGraph refuses slices that cut several graphs out of the tensors.
func (t *torchArrays) oneGraph(slices any) error {
	d, ok := slices.(*pickle.Dict)
	if o, is := slices.(*pickle.Object); is && !ok {
		d = &o.Items
	}
	if d == nil {
		return nil
	}
	for i, v := range d.Values {
		if !torchfile.IsTensor(v) {
			continue
		}
		a, err := t.file.Tensor(v, fmt.Sprint("slices of ", pickle.Text(d.Keys[i])))
		if err != nil {
			return err
		}
		if a.Len() > 2 {
			return t.bad("it holds %d graphs", a.Len()-1).Then("save one of them: torch.save(dataset[0], FILE)")
		}
	}
	return nil
}

// rest returns the unused names, without PyG's internal ones.
func (t *torchArrays) rest() (names []string) {
	for i, k := range t.dict.Keys {
		if name := pickle.Text(k); t.dict.Values[i] != nil && !t.got[name] && !strings.HasPrefix(name, "_") {
			names = append(names, name)
		}
	}
	return names
}

func (t *torchArrays) has(name string) bool { return t.dict.Get(name) != nil }

// get returns a tensor, an array of NumPy, or a number.
func (t *torchArrays) get(name string) ndarray {
	t.got[name] = true
	a := ndarray{op: opTorch, path: t.path + "[" + name + "]"}
	switch v := t.dict.Get(name).(type) {
	case nil:
		a.err = t.absent(name)
	case int64:
		a.Array = (&npy.Array{Type: "<i8", Shape: []int{}, Data: binary.LittleEndian.AppendUint64(nil, uint64(v))}).Called(a.path)
	case *pickle.List:
		a.Array = &npy.Array{Shape: []int{len(v.Items)}} // words
	default:
		if torchfile.IsTensor(v) {
			a.Array, a.err = t.file.Tensor(v, name)
			break
		}
		array, err := torchfile.NumPy(v)
		if err != nil {
			a.err = a.bad("%v", err)
			break
		}
		a.Array = array.Called(a.path)
	}
	return a
}

// absent returns the fault of a missing tensor.
func (t *torchArrays) absent(name string) error {
	var names []string
	for _, k := range t.dict.Keys {
		names = append(names, pickle.Text(k))
	}
	f := t.bad("there is no %q among its tensors: %.200s", name, strings.Join(names, ", "))
	if name == "edge_index" && slices.Contains(names, "adj_t") {
		return f.Then("give the Data an edge_index: row, col, _ = data.adj_t.t().coo(); data.edge_index = torch.stack([row, col])")
	}
	return f.Then("add a tensor of that name to the Data")
}

// words returns the texts of a list, or numbers as texts.
func (t *torchArrays) words(name string) ([]string, error) {
	list, ok := t.dict.Get(name).(*pickle.List)
	if !ok {
		return arrayWords(t.get(name))
	}
	var words []string
	for i, v := range list.Items {
		switch x := v.(type) {
		case string:
			words = append(words, x)
		case int64:
			words = append(words, strconv.FormatInt(x, 10))
		default:
			return nil, t.bad("item %d of %s is %s, expected a string or an integer", i, name, pickle.Describe(v))
		}
	}
	return words, nil
}

// arrayWords returns the texts of an array, or its whole numbers as texts.
func arrayWords(a ndarray) ([]string, error) {
	if a.err != nil {
		return nil, a.err
	}
	if list, err := a.Strings(); err == nil {
		return list, nil
	}
	numbers, err := a.flat().integers(-1)
	if err != nil {
		return nil, err
	}
	words := make([]string, len(numbers))
	for i, x := range numbers {
		words[i] = strconv.FormatInt(x, 10)
	}
	return words, nil
}

// zipArrays are the arrays of an npz file.
type zipArrays struct {
	*npy.Zip
	op, path string
}

func (z zipArrays) has(name string) bool { return z.Has(name) }

func (z zipArrays) get(name string) ndarray { return arrayIn(z.op, z.path, z.Zip, name) }

func (z zipArrays) words(name string) ([]string, error) { return arrayWords(z.get(name)) }
