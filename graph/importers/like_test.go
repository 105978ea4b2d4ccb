package importers

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
)

// notInput lists the options that do not change a network's input, with reasons.
var notInput = map[string]string{
	"Src": "names the source", "Dst": "names the dataset", "Name": "names the dataset", "Force": "replaces a folder",
	"FeatureFormat": "rounds numbers, and a network takes both formats",
	"Task":          "labels are no input, and Schema.Fits compares the task", "Label": "labels are no input",
	"Split": "the split is no input", "Stratify": "the split is no input", "SplitSizes": "the split is no input",
	"Seed":  "the split is no input",
	"Graph": "chooses the data", "Nodes": "names a file", "Edges": "names a file", "ID": "ids are no input",
	"DropUnknown": "without it such edges are refused", "Like": "takes over what others decide",
	"Relations": "only packages of Debian have it", "DropEdgeFeatures": "predict compares the number of features of edges",
}

// inputOptions lists the options that do, with a value that changes the table of inputTable.
var inputOptions = map[string]func(o *Options){
	"Normalize":        func(o *Options) { o.Normalize = true },
	"Symmetrise":       func(o *Options) { o.Symmetrise = true },
	"Features":         func(o *Options) { o.Features = []string{"x"} },
	"Ends":             func(o *Options) { o.Ends = []string{"dst", "src"} },
	"Weight":           func(o *Options) { o.Weight = "amount" },
	"EdgeFeatures":     func(o *Options) { o.EdgeFeatures = []string{"amount"} },
	"DropWeights":      func(o *Options) { o.DropWeights = true },
	"Standardise":      func(o *Options) { o.Standardise = true },
	"Drop":             func(o *Options) { o.Drop = []string{"x"} },
	"Missing":          func(o *Options) { o.Missing = []string{"8"} },
	"Fill":             func(o *Options) { o.Fill = "mean" },
	"Categories":       func(o *Options) { o.Categories = []string{"code"} },
	"Hash":             func(o *Options) { o.Hash = []string{"about"} },
	"Words":            func(o *Options) { o.Words = []string{"about"} },
	"Dates":            func(o *Options) { o.Dates = []string{"day"} },
	"SplitByTime":      func(o *Options) { o.SplitByTime = "day" }, // which is then not a feature
	"Relation":         func(o *Options) { o.Relation, o.DropWeights = "how", true },
	"Featureless":      func(o *Options) { o.Relation, o.DropWeights, o.Featureless, o.Drop = "how", true, "ids", nodeColumns },
	"ReverseRelations": func(o *Options) { o.Relation, o.DropWeights, o.ReverseRelations = "how", true, "on" },
}

var nodeColumns = []string{"x", "code", "about", "day"}

// everyUse is the use of a network that needs all of a graph.
var everyUse = graph.EdgeUse{Edges: true, Weights: true, Features: true}

// inputTable imports a small table.
func inputTable(t *testing.T, o Options) (*graph.Dataset, string) {
	t.Helper()
	o.Src = files(t, map[string][]byte{
		"nodes.csv": []byte("id,label,split,x,code,about,day\na,p,train,1,7,red boats,20240514\n" +
			"b,q,train,3,8,blue boats,20240601\nc,p,val,5,7,red cars,20241224\nd,q,test,,8,red boats,20250101\n"),
		"edges.csv": []byte("src,dst,weight,amount,how\na,b,2,5,knows\nb,c,3,6,pays\nc,d,0.5,7,pays\n"),
	})
	return written(t, "csv", o)
}

// refused reports whether a model of one dataset refuses the other.
func refused(model, data *graph.Dataset) bool {
	return model.Meta.FeatureDim != data.Meta.FeatureDim || model.Meta.EdgeDim != data.Meta.EdgeDim ||
		model.Meta.Schema().InputsFit("predict", "data", data.Meta, everyUse) != nil
}

// sameInput compares the inputs of a network.
func sameInput(a, b *graph.Dataset) bool {
	return reflect.DeepEqual(a.In, b.In) && slices.Equal(a.Weights, b.Weights) && slices.Equal(a.EdgeFeatures, b.EdgeFeatures) &&
		slices.Equal(a.Relations, b.Relations) &&
		slices.Equal(spread(a.Features), spread(b.Features)) && a.Meta.Normalized == b.Meta.Normalized
}

// TestInputOptions: each import option that changes a network's input is recorded, compared
// with the model's and applied by --like. A new option must be classified here.
func TestInputOptions(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Options]()) {
		_, input := inputOptions[f.Name]
		if f.Tag.Get("kong") == "-" || f.Anonymous || !f.IsExported() {
			continue
		}
		if _, not := notInput[f.Name]; input == not {
			t.Errorf("%s must be in one of inputOptions and notInput", f.Name)
		}
	}
	base := Options{TableOptions: TableOptions{Fill: "zero"}}
	plain, _ := inputTable(t, base)
	for name, change := range inputOptions {
		t.Run(name, func(t *testing.T) {
			o := base
			change(&o)
			changed, _ := inputTable(t, o)
			if sameInput(plain, changed) {
				t.Fatal("the option changes nothing")
			}
			for _, c := range []struct {
				name        string
				model, data *graph.Dataset
			}{{"without", plain, changed}, {"with", changed, plain}} {
				if !refused(c.model, c.data) {
					t.Errorf("a model trained %s the option takes the other dataset", c.name)
				}
				like, _ := inputTable(t, Options{TableOptions: TableOptions{Like: c.model.Dir}})
				if !sameInput(like, c.model) || refused(c.model, like) {
					t.Errorf("--like a dataset %s the option gives another input", c.name)
				}
			}
		})
	}
}

// TestLikeContradicted: a flag that contradicts --like is refused with its remedy.
func TestLikeContradicted(t *testing.T) {
	plain, _ := inputTable(t, Options{TableOptions: TableOptions{Fill: "zero"}})
	for name, want := range map[string]string{
		"Normalize": "--normalize-features contradicts", "Symmetrise": "--symmetrise contradicts",
		"DropWeights": "--drop-weights contradicts",
		"Weight":      `--weight=amount contradicts --like=` + plain.Dir + `, where the column of weights is "weight"; leave --weight out`,
		"Ends":        "--ends=dst,src contradicts --like=" + plain.Dir + ", where edges go from column src to dst; leave --ends out",
	} {
		o := Options{TableOptions: TableOptions{Like: plain.Dir}}
		inputOptions[name](&o)
		_, err := importTable(t, "id,x,code,about,day\na,1,7,red boats,20240514\n", "src,dst,weight,amount\n", o)
		if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	o := Options{TableOptions: TableOptions{Like: plain.Dir}}
	if _, err := importTable(t, "id,x,code,about,day\na,1,7,red boats,20240514\n", "src,dst,amount\n", o); err == nil ||
		!strings.Contains(err.Error(), `no column "weight"`) {
		t.Errorf("a table without the model's weights: %v", err)
	}
}

// TestLikeUnrecorded: a model of an older version refuses nothing, and --like reports
// unrecorded options.
func TestLikeUnrecorded(t *testing.T) {
	plain, _ := inputTable(t, Options{TableOptions: TableOptions{Fill: "zero"}})
	old := plain.Meta.Schema()
	old.EdgeImport, old.Directed, old.Weighted = nil, false, false
	o := Options{Symmetrise: true, Schema: old, TableOptions: TableOptions{Like: "RUN", Weight: "amount"}}
	data, log := inputTable(t, o)
	if err := old.InputsFit("predict", data.Dir, data.Meta, everyUse); err != nil || data.Meta.Directed || !data.Meta.Weighted {
		t.Errorf("%v; the dataset is %+v", err, data.Meta)
	}
	if !strings.Contains(log, "like=RUN does not record --symmetrise") {
		t.Errorf("the log lacks the options to give:\n%s", log)
	}
	meta := *plain.Meta
	meta.EdgeImport = nil // a dataset of an older version
	if err := data.Meta.Schema().InputsFit("predict", "data", &meta, everyUse); err == nil ||
		!strings.Contains(err.Error(), "--symmetrise") {
		t.Errorf("edges in one direction for a model of both: %v", err)
	}
	meta.Directed = false
	if err := data.Meta.Schema().InputsFit("predict", "data", &meta, everyUse); err != nil {
		t.Errorf("a dataset that may have been symmetrised is refused: %v", err)
	}
}

// TestUnusedInput: a network that does not use the edges, or their weights, accepts any.
func TestUnusedInput(t *testing.T) {
	plain, _ := inputTable(t, Options{TableOptions: TableOptions{Fill: "zero"}})
	both, _ := inputTable(t, Options{Symmetrise: true, TableOptions: TableOptions{Fill: "zero"}})
	light, _ := inputTable(t, Options{TableOptions: TableOptions{Fill: "zero", DropWeights: true}})
	if err := both.Meta.Schema().InputsFit("predict", "data", plain.Meta, graph.EdgeUse{}); err != nil {
		t.Errorf("without edges: %v", err)
	}
	if err := plain.Meta.Schema().InputsFit("predict", "data", light.Meta, graph.EdgeUse{Edges: true}); err != nil {
		t.Errorf("without weights: %v", err)
	}
}

// TestImportsOfOtherFormats: formats without columns record their options, too.
func TestImportsOfOtherFormats(t *testing.T) {
	src := filepath.Join(files(t,
		map[string][]byte{"x.npz": tinyPyG("edge_weight", array("<f4", "(4,)", little([]float32{2, 3, 4, 5})))}), "x.npz")
	one, _ := written(t, "npz", Options{Src: src})
	both, _ := written(t, "npz", Options{Src: src, Symmetrise: true})
	light, _ := written(t, "npz", Options{Src: src, TableOptions: TableOptions{DropWeights: true}})
	for _, c := range []struct {
		model, data *graph.Dataset
		want        string
	}{{both, one, "with --symmetrise"}, {one, both, "without --symmetrise"}, {one, light, "without --drop-weights"},
		{light, one, "with --drop-weights"}} {
		if err := c.model.Meta.Schema().InputsFit("predict", "data", c.data.Meta, everyUse); fault.KindOf(err) != fault.Data ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
