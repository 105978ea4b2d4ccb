package importers

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"siafu/graph"
	"siafu/internal/npy"
)

var dglFormat = importer{
	entry: entry{Name: "dgl", Help: "file of `dgl.save_graphs`"},
	read:  dgl, recognises: isDGL, after: warnOfDirection, weights: true, features: true, named: []string{}, several: true,
}

func isDGL(src string) bool {
	f, err := os.Open(src)
	if err != nil {
		return false
	}
	defer f.Close()
	var begin [8]byte
	_, err = io.ReadFull(f, begin[:])
	return err == nil && isDGLFile(begin[:])
}

// dgl reads a graph of a file of dgl.save_graphs.
func dgl(k *resources, o Options) *graph.Content {
	return dglGraph(k, o, must(newDGLFile(k.file(k.input), k.path)))
}

func dglGraph(k *resources, o Options, f *dglFile) *graph.Content {
	number, last := 0, strconv.Itoa(f.Graphs-1)
	switch {
	case o.Graph != nil:
		number = *o.Graph
	case f.Graphs > 1:
		check(f.bad("it holds %d graphs", f.Graphs).Then("choose one with --graph, from 0 to %s", last))
	}
	if number < 0 || number >= f.Graphs {
		k.refuse("choose --graph from 0 to "+last, "there is no graph %d, the file has %d", number, f.Graphs)
	}
	kinds, relations, err := f.graph(number)
	check(err)
	if len(kinds) != 1 || len(relations) != 1 {
		return dglRelational(k, o, kinds, relations)
	}
	whole := kinds[0]
	whole.Ends, whole.EdgeData = relations[0].Ends, relations[0].EdgeData
	d := newDGLArrays(k.input, &whole)
	for i, name := range o.EdgeFeatures {
		if a, _ := among(d.graph.EdgeData, "edata", []string{name}); a == nil {
			k.require(false, "name a tensor of edata", "there is no %.60q in edata, which --edge-features names: %.200s", name,
				strings.Join(d.rest(nil), ", "))
		}
		if i == 0 {
			d.features = name
			o.EdgeFeatures = append([]string{"edge_attr"}, o.EdgeFeatures[1:]...) // the name that pyg uses
		}
	}
	c := pyg(k, o, d)
	d.logRest(o, f.Labels)
	return c
}

// dglRelational reads a graph with several types of vertices or edges.
func dglRelational(k *resources, o Options, kinds, relations []dglPart) *graph.Content {
	var list []kindArrays
	var between []relationArrays
	var all []*dglArrays
	for i := range kinds {
		d := newDGLArrays(k.element(kinds[i].Name), &kinds[i])
		list, all = append(list, kindArrays{name: kinds[i].Name, namedArrays: d}), append(all, d)
	}
	for i, r := range relations {
		from, to := kinds[r.From].Name, kinds[r.To].Name
		d := newDGLArrays(k.element(from+","+r.Name+","+to), &relations[i])
		between, all = append(between, relationArrays{from, r.Name, to, d}), append(all, d)
	}
	c := pygRelational(k, o, list, between)
	for _, d := range all {
		d.logRest(o, nil)
	}
	return c
}

// dglNames maps PyTorch Geometric's names to names in ndata and edata, in order of preference.
var dglNames = map[string][]string{
	"x": {"feat", "features", "x"}, "y": {"label", "labels", "y"}, "ids": {"ids"},
	"train_mask": {"train_mask"}, "val_mask": {"val_mask"}, "test_mask": {"test_mask"},
	"edge_weight": {"weight", "edge_weight", "w"}, "edge_attr": {"feat", "features", "edge_attr"},
}

// dglArrays gives the tensors of a graph by PyTorch Geometric's names.
type dglArrays struct {
	input
	graph *dglPart
	got   map[string]bool // their location: "ndata[feat]"
	// features is the tensor of edata with edge features, "" if the user names none.
	features string
}

func newDGLArrays(at input, part *dglPart) *dglArrays {
	return &dglArrays{input: at, graph: part, got: map[string]bool{}}
}

// find returns the tensor of a name, and its location.
func (d *dglArrays) find(name string) (a *npy.Array, place string) {
	switch name {
	case "edge_index":
		return d.graph.Ends, "edges"
	case "num_nodes":
		count := number64(d.graph.Vertices)
		return &count, "vertices"
	case "edge_weight":
		return among(d.graph.EdgeData, "edata",
			slices.DeleteFunc(slices.Clone(dglNames[name]), func(name string) bool { return name == d.features }))
	case "edge_attr":
		if d.features != "" {
			return among(d.graph.EdgeData, "edata", []string{d.features})
		}
		if a, place := among(d.graph.EdgeData, "edata", dglNames[name]); a != nil && len(a.Shape) == 2 && a.Shape[1] > 1 {
			return a, place
		}
		return nil, "" // a single column is ambiguous; it is logged as ignored
	}
	return among(d.graph.VertexData, "ndata", dglNames[name])
}

func among(list []dglTensor, of string, names []string) (*npy.Array, string) {
	for _, name := range names {
		if i := slices.IndexFunc(list, func(t dglTensor) bool { return t.Name == name }); i >= 0 {
			return list[i].Array, location(of, name)
		}
	}
	return nil, ""
}

func location(of, name string) string { return fmt.Sprintf("%s[%.60q]", of, name) }

func (d *dglArrays) Has(name string) bool { a, _ := d.find(name); return a != nil }

func (d *dglArrays) get(name string) ndarray {
	a, at := d.find(name)
	d.got[at] = true
	if a == nil {
		d.require(false, `give the graph one: g.ndata["feat"] = …`, "there is no %q in ndata: %.200s", dglNames[name][0],
			strings.Join(d.rest(nil), ", "))
	}
	element := d.element(at)
	return ndarray{Array: a.Called(element.path), input: element}
}

// logRest logs the unused tensors.
func (d *dglArrays) logRest(o Options, labels []dglTensor) {
	if rest := d.rest(labels); len(rest) > 0 {
		o.Log("path=%s left_out=%s", d.path, strings.Join(rest, ","))
	}
}

// rest returns the locations of unused tensors.
func (d *dglArrays) rest(labels []dglTensor) (names []string) {
	for of, list := range map[string][]dglTensor{"ndata": d.graph.VertexData, "edata": d.graph.EdgeData, "labels": labels} {
		for _, t := range list {
			if p := location(of, t.Name); !d.got[p] {
				names = append(names, p)
			}
		}
	}
	slices.Sort(names)
	return names
}
