package importers

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"siafu/graph"
	"siafu/internal/catalog"
	"siafu/internal/fault"
)

// Options are the options of an import: the flags of "siafu import".
type Options struct {
	Src              string `arg:"" help:"File or folder to import; - is standard input (debian)."`
	Dst              string `arg:"" help:"Dataset folder to create."`
	Name             string `help:"Name of the dataset. Empty: name of its folder."`
	Normalize        bool   `name:"normalize-features" help:"Divide each feature row by its sum."`
	FeatureFormat    string `name:"feature-format" default:"float32" enum:"float32,bf16" help:"Number format of dense features in the dataset: float32 or bf16. bf16 (bfloat16) halves the file; values are rounded to 8 bits of mantissa."`
	Symmetrise       bool   `help:"Store every edge in both directions."`
	Task             string `enum:",multiclass,multilabel,regression" default:"" help:"Task of the labels: multiclass, multilabel or regression. Empty: chosen from the label columns and their values."`
	Split            string `help:"Split to use if the source has several. A file of the folder, the number of a mask, or a column of a table."`
	Graph            *int   `help:"Index of the graph in a file with several graphs, from 0 (${several=})."`
	Stratify         bool   `help:"Stratify a random split. Each set has the same fraction of every class."`
	SplitSizes       string `name:"split-sizes" placeholder:"TRAIN/VAL/TEST" help:"Sizes of a random or time-ordered split, in percent. Percentages are of the labelled vertices. Empty: 60/20/20, or the sizes that the authors of the format use."`
	Seed             uint64 `default:"1" help:"Seed of a random split."`
	ReverseRelations string `name:"reverse-relations" enum:"auto,on,off" default:"auto" help:"Reverse relations of a relational graph: auto, on or off. on: add the reverse of every relation, so that information flows in both directions; auto: only of relations between two kinds of vertices, but of all relations of triples."`
	Relations        bool   `help:"Import a relational graph: packages, virtual packages, source packages and maintainers, with a relation for each field (debian)."`
	Force            bool   `help:"Replace an existing dataset folder."`

	TableOptions `embed:""`

	drawn *bool // set if the split is random; nil: not requested

	// Schema is the schema of TableOptions.Like if that is not a dataset folder; nil: it is one.
	Schema *graph.Schema `kong:"-"`

	Stdin io.Reader                        `kong:"-"`
	Log   func(format string, args ...any) `kong:"-"` // nil: silent
}

// entry names and describes a choice.
type entry = catalog.Entry

// importer is one format. A new format is one importer in a file of its own and a line in
// importFormats.
type importer struct {
	entry
	// read converts the source to a dataset in the memory of k. An error ends read with check.
	read func(k *resources, o Options) *graph.Content
	// recognises reports whether src looks like this format.
	recognises func(src string) bool
	// after, if set, adds files to the written dataset folder, or lines to the log.
	after    func(o Options, r *graph.WriteReport) error
	weights  bool // edge weights are read, if any
	features bool // edge features are read without a flag
	// named lists the names for --edge-features if there are no columns: nil for none, and an
	// empty list if they depend on the source.
	named   []string
	several bool // may have several graphs
	// onlySplit is the reason why --split cannot select, "" if it can.
	onlySplit string
	// A format of tables has no read, but open: it reads the columns of a table, which options can
	// name. The names of tables have one of the endings.
	open    func(at input) *tableFile
	endings []string
}

func (f *importer) isTable() bool { return f.open != nil }

// importFormats lists the formats; "auto" takes the first that recognises the source.
var importFormats = []*importer{
	&rawFormat,
	&npzFormat,
	&torchFormat,
	&dglFormat,
	&planetoidFormat,
	&ogbFormat,
	&graphsaintFormat,
	&redditFormat,
	&bsnapFormat,
	&snapFormat,
	&debianFormat,
	&triplesFormat,
	&csvFormat,
	&parquetFormat,
}

// Choices describes the formats of Import, without "auto".
func Choices() []catalog.Entry { return catalog.Entries(importFormats, nil) }

// Names returns the formats of Import, without "auto".
func Names() []string { return catalog.Names(Choices()) }

// HelpLists returns the lists that the help of Options has as ${…}, by name.
func HelpLists() map[string]string {
	where := func(keep func(*importer) bool) string {
		return strings.Join(catalog.Names(catalog.Entries(importFormats, keep)), ", ")
	}
	return map[string]string{
		"formats":  strings.Join(Names(), ", "),
		"tables":   where((*importer).isTable),
		"weighted": where(func(f *importer) bool { return f.weights }),
		"featured": where(func(f *importer) bool { return f.features }),
		"several":  where(func(f *importer) bool { return f.several }),
	}
}

// Import reads o.Src as the named format, or with "auto" as the recognised one, and writes a
// dataset folder at o.Dst. If it fails, o.Dst does not exist, or is unchanged.
func Import(from string, o Options) (report *graph.WriteReport, err error) {
	defer catch(&err)
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	f := must(find(from, o))
	checkTarget(o)
	o.percentages(usual)
	sweepUnpacked(o.Dst)
	k := newResources(input{"import " + f.Name, o.Src})
	defer k.release()
	c := must(f.load(k, o))
	warnOfLabels(c, o)
	if report, err = graph.Write(o.Dst, *c, o.Force); err != nil {
		return nil, err
	}
	f.warnOfEdges(c, o, report)
	if f.after == nil || c.Relations != nil {
		return report, nil
	}
	if err := f.after(o, report); err != nil {
		os.RemoveAll(o.Dst) // incomplete
		return nil, err
	}
	return report, nil
}

// load converts the source to a dataset in the memory of k.
func (f *importer) load(k *resources, o Options) (c *graph.Content, err error) {
	defer catch(&err)
	o.drawn = new(bool)
	if f.onlySplit != "" {
		k.noChoice(o, f.onlySplit)
	}
	if o.Relations && f != &debianFormat {
		k.refuse("leave --relations out: other formats have relations if their files do", "--relations, but the source has no packages")
	}
	if o.Graph != nil && !f.several {
		k.refuse("leave --graph out", "--graph=%d, but the format holds one graph", *o.Graph)
	}
	if !f.isTable() {
		columns := o.TableOptions
		columns.DropWeights = columns.DropWeights && !f.weights
		columns.DropEdgeFeatures = columns.DropEdgeFeatures && !f.features
		columns.Standardise = false // scaleTargets checks it
		columns.Featureless = ""    // refused below
		if f.named != nil {
			f.checkNamed(k.input, o.EdgeFeatures)
			columns.EdgeFeatures = nil
		}
		if !reflect.DeepEqual(columns, TableOptions{}) {
			k.refuse("leave out the flags for csv and parquet, or set --from csv or --from parquet",
				"it has no columns, but flags name some")
		}
	}
	if f.isTable() {
		c = f.readTables(k, o)
	} else {
		c = f.read(k, o)
	}
	c.Source = cmp.Or(c.Source, f.Name+" "+nameOf(o.Src))
	if c.Relations == nil && (isSet(o.ReverseRelations) || isSet(o.Featureless)) {
		k.refuse("leave them out, or import tables in the folders nodes and edges",
			"--reverse-relations and --featureless are for graphs with relations")
	}
	o.checkDrawn(k.input, c)
	complete(c, o)
	checkContent(k.input, c)
	scaleTargets(k.input, o, c)
	if task := cmp.Or(c.Task, graph.MultiClass); o.Task != "" && o.Task != task &&
		slices.ContainsFunc(c.Labels, func(l int32) bool { return l >= 0 }) {
		k.refuse("import such labels as npz or csv", "--task=%s, but its labels are for %s", o.Task, task)
	}
	return c, nil
}

// checkNamed refuses names that --edge-features cannot have.
func (f *importer) checkNamed(at input, names []string) {
	for i, name := range names {
		if len(f.named) > 0 && (slices.Contains(names[:i], name) || !slices.Contains(f.named, name)) {
			at.refuse("name some of "+strings.Join(f.named, ", ")+", each once",
				"--edge-features names %q, which is not an edge feature of this format or is named twice", name)
		}
	}
}

func (p input) noChoice(o Options, reason string) {
	if o.Split != "" {
		p.refuse("leave --split out", "split %q: %s", o.Split, reason)
	}
}

// checkTarget refuses early a destination that Write would refuse after all the work.
func checkTarget(o Options) {
	if o.Dst == "" {
		input{"import", o.Src}.refuse("", "no destination folder")
	}
	check(graph.CheckTarget(o.Dst, o.Force))
}

func find(from string, o Options) (*importer, error) {
	if f, ok := catalog.Find(importFormats, from); ok {
		return f, nil
	}
	if from != "auto" && from != "" {
		return nil, fault.New(fault.Usage, "import", o.Src, "unknown format %q", from).
			Then("use one of %s, or auto", strings.Join(Names(), ", "))
	}
	if _, err := os.Stat(o.Src); err != nil && !isStandardInput(o.Src) {
		return nil, fault.System("import", o.Src, err)
	}
	if f := tableFormatOf(o.Nodes); f != nil {
		o.Log("format=%s", f.Name)
		return find(f.Name, o)
	}
	for _, f := range importFormats {
		if f.recognises(o.Src) {
			o.Log("format=%s", f.Name)
			return f, nil
		}
	}
	return nil, unrecognised(o)
}

// complete applies the options common to all formats.
func complete(c *graph.Content, o Options) {
	c.Normalize, c.FeatureFormat = c.Normalize || o.Normalize, o.FeatureFormat
	c.Symmetrise = c.Symmetrise || o.Symmetrise
	if c.EdgeImport == nil {
		c.EdgeImport = &graph.EdgeImport{WeightsDropped: o.DropWeights, Features: o.EdgeFeatures}
	}
	c.EdgeImport.Symmetrised = c.Symmetrise
	c.Name = strings.ToLower(o.Name)
}

// nameOf returns the name of a file or a folder without its extensions.
func nameOf(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		path = full
	}
	base := filepath.Base(path)
	for _, ext := range []string{".tar.zst", ".npz", ".pt", ".pth"} {
		base = strings.TrimSuffix(base, ext)
	}
	return base
}

// isStandardInput recognises the one source that is no path.
func isStandardInput(src string) bool { return src == "-" }

// holds recognises a folder by a file in it.
func holds(file string) func(src string) bool {
	return func(src string) bool { return exists(filepath.Join(src, file)) }
}

// hasNodes recognises a folder by a table of vertices.
func hasNodes(endings []string) func(src string) bool {
	return func(src string) bool {
		return hasRelations(src, endings) ||
			slices.ContainsFunc(endings, func(e string) bool { return exists(filepath.Join(src, "nodes"+e)) })
	}
}

// isFile recognises a file by the ending of its name.
func isFile(endings ...string) func(src string) bool {
	return func(src string) bool {
		info, err := os.Stat(src)
		return err == nil && !info.IsDir() && slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(src, e) })
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
