package importers

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"siafu/graph"
	"siafu/internal/npy"
	"siafu/internal/pickle"
)

var torchFormat = importer{
	entry: entry{Name: "torch", Help: "`.pt` with a `Data` of PyTorch Geometric"},
	read:  torch, recognises: isFile(".pt", ".pth"), after: warnOfDirection, weights: true, features: true, named: pygEdgeArrays,
}

// torch reads a file of torch.save with a Data of PyTorch Geometric, the pair of a Data and
// its slices of an InMemoryDataset, or a dict of such tensors.
func torch(k *resources, o Options) *graph.Content {
	return torchGraph(k, o, must(pickle.NewTorch(k.file(k.input), k.path)))
}

func torchGraph(k *resources, o Options, f *pickle.TorchFile) *graph.Content {
	t := &torchArrays{file: f, input: k.input, got: map[string]bool{}}
	t.dict = t.data(f.Value, nesting)
	if slices.ContainsFunc(t.dict.Keys, isRelationKey) {
		return t.relational(k, o)
	}
	c := pyg(k, o, t)
	t.logRest(o)
	return c
}

type torchArrays struct {
	file *pickle.TorchFile
	input
	dict *pickle.Dict
	got  map[string]bool
}

// nesting is the maximum depth of lists and tuples around a graph. A list may contain itself.
const nesting = 4

// data finds the dict of tensors in a saved value.
func (t *torchArrays) data(v any, nesting int) *pickle.Dict {
	if nesting > 0 {
		switch x := v.(type) {
		case *pickle.Dict:
			return x
		case pickle.Tuple: // (data, slices), (dict, slices, class)
			if len(x) == 2 || len(x) == 3 {
				t.oneGraph(x[1], nesting)
				return t.data(x[0], nesting-1)
			}
		case *pickle.List:
			t.require(len(x.Items) == 1, "save one graph", "it is a list of %d", len(x.Items))
			return t.data(x.Items[0], nesting-1)
		case *pickle.Object:
			if d := t.object(x); d != nil {
				return d
			}
		}
	}
	t.require(false, "save the Data itself, or a dict of its tensors: torch.save(data.to_dict(), FILE)",
		"it holds %s instead of a PyTorch Geometric Data", pickle.Describe(v))
	return nil
}

// object finds the dict of tensors in an instance; nil: there is none.
func (t *torchArrays) object(o *pickle.Object) *pickle.Dict {
	state, _ := o.State.(*pickle.Dict)
	_, class, _ := strings.Cut(string(o.Class), " ")
	if class == "OrderedDict" {
		return &o.Items
	}
	if class == "HeteroData" && state != nil {
		return heteroDict(state)
	}
	if !strings.HasPrefix(string(o.Class), "torch_geometric.") || state == nil {
		return nil
	}
	store, _ := state.Get("_store").(*pickle.Object) // since version 2
	if store == nil {
		return state
	}
	return mappingOf(store)
}

// mappingOf returns the tensors of a store of PyTorch Geometric.
func mappingOf(store *pickle.Object) *pickle.Dict {
	inner, _ := store.State.(*pickle.Dict)
	if inner == nil {
		return nil
	}
	mapping, _ := inner.Get("_mapping").(*pickle.Dict)
	return mapping
}

// oneGraph refuses slices that cut several graphs out of the tensors.
func (t *torchArrays) oneGraph(slices any, nesting int) {
	d, ok := slices.(*pickle.Dict)
	if o, is := slices.(*pickle.Object); is && !ok {
		d = &o.Items
	}
	if d == nil {
		return
	}
	for i, v := range d.Values {
		if inner, ok := v.(*pickle.Dict); ok && nesting > 0 {
			t.oneGraph(inner, nesting-1) // of a kind or a relation
		}
		if pickle.IsTensor(v) {
			a := must(t.file.Tensor(v, fmt.Sprint("slices of ", pickle.Text(d.Keys[i]))))
			t.require(a.Len() <= 2, "save one of them: torch.save(dataset[0], FILE)", "it holds %d graphs", a.Len()-1)
		}
	}
}

// logRest logs the unused names.
func (t *torchArrays) logRest(o Options) {
	if rest := t.rest(); len(rest) > 0 {
		o.Log("path=%s left_out=%s", t.path, strings.Join(rest, ","))
	}
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

func (t *torchArrays) Has(name string) bool { return t.dict.Get(name) != nil }

// get returns a tensor, an array of NumPy, a number, or a list of texts and numbers.
func (t *torchArrays) get(name string) ndarray {
	t.got[name] = true
	a := ndarray{input: t.element(name)}
	switch v := t.dict.Get(name).(type) {
	case nil:
		check(t.absent(name))
	case int64:
		a.Array = number64(v).Called(a.path)
	case *pickle.List:
		a.Array, a.list = &npy.Array{Shape: []int{len(v.Items)}}, t.texts(name, v)
	default:
		a.Array = must(t.file.Array(v, name))
	}
	return a
}

// number64 returns a number as an array without dimensions.
func number64(x int64) npy.Array {
	return npy.Array{Type: "<i8", Shape: []int{}, Data: binary.LittleEndian.AppendUint64(nil, uint64(x))}
}

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

// texts returns the items of a list, numbers as texts.
func (t *torchArrays) texts(name string, list *pickle.List) []string {
	texts := make([]string, len(list.Items))
	for i, v := range list.Items {
		switch v.(type) {
		case string, int64:
			texts[i] = fmt.Sprint(v)
		default:
			t.require(false, "", "item %d of %s is %s, expected a string or an integer", i, name, pickle.Describe(v))
		}
	}
	return texts
}

// words returns the texts of an array, or its whole numbers as texts.
func (a ndarray) words() []string {
	if a.list != nil {
		return a.list
	}
	if list, err := a.Strings(); err == nil {
		return list
	}
	numbers := a.flat().integers(-1)
	words := make([]string, len(numbers))
	for i, x := range numbers {
		words[i] = strconv.FormatInt(x, 10)
	}
	return words
}
