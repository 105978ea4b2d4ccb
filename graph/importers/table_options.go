package importers

import (
	"reflect"
	"slices"

	"siafu/graph"
	"siafu/graph/fault"
)

// TableOptions are the additional options of an import of tables: the meaning of columns
// and their conversion to features.
type TableOptions struct {
	Nodes            string   `placeholder:"FILE" help:"Table of the vertices, in SRC (csv, parquet). Empty: nodes.csv, .tsv or .parquet."`
	Edges            string   `placeholder:"FILE" help:"Table of the edges, in SRC (csv, parquet). Empty: edges.csv, .tsv or .parquet."`
	ID               string   `placeholder:"COLUMN" help:"Column of the vertices' ids (csv, parquet). Empty: id."`
	Label            string   `placeholder:"COLUMN" help:"Column of the labels, or of several: A,B,C with a number in each (csv, parquet). Empty: label."`
	Features         []string `placeholder:"A,B" help:"Columns that become features (csv, parquet). Empty: all others."`
	Ends             []string `placeholder:"A,B" help:"Columns of an edge's source and destination (csv, parquet). Empty: src,dst."`
	Weight           string   `placeholder:"COLUMN" help:"Column of the edges' weights (csv, parquet). Empty: weight, where there is one."`
	EdgeFeatures     []string `name:"edge-features" placeholder:"A,B" help:"What becomes features of edges: columns of numbers (csv, parquet), an array (npz, torch, dgl), or some of field,version,alternative (debian)."`
	DropEdgeFeatures bool     `name:"drop-edge-features" help:"Take edges without their features (npz, torch, dgl, ogb)."`
	DropWeights      bool     `help:"Take weighted edges without their weights (csv, parquet, npz, graphsaint, torch, dgl, ogb)."`
	DropUnknown      bool     `help:"Leave out edges whose ends are no vertices (csv, parquet)."`
	Standardise      bool     `help:"Bring numbers to mean 0 and deviation 1 on training rows, those of edges on all (csv, parquet)."`
	Fill             string   `enum:",mean,zero" default:"" help:"What stands for missing numbers, mean (of training rows, or all edges) or zero; other missing cells set no feature (csv, parquet). Empty: they are refused."`
	Categories       []string `placeholder:"A,B" help:"Columns with a feature for each value, be they numbers (csv, parquet)."`
	Hash             []string `placeholder:"A,B" help:"Columns whose values share 64 features by their hash (csv, parquet)."`
	Words            []string `placeholder:"A,B" help:"Columns of text with a feature for each of the 1,000 most frequent words (csv, parquet)."`
	Dates            []string `placeholder:"A,B" help:"Columns with features of dates, be they numbers: 20240514, or seconds, ms, µs or ns since 1970 (csv, parquet). Dates such as 2024-05-14 have them anyway."`
	SplitByTime      string   `name:"split-by-time" placeholder:"COLUMN" help:"Column of dates or numbers that orders the labelled vertices: the oldest are for training, the next for validation, the newest for the test, by --split-sizes (csv, parquet)."`
	Like             string   `placeholder:"RUN" help:"Run folder, or dataset, whose columns, scaling, classes, edge directions and weights a table takes over (csv, parquet)."`
}

// onlyTables refuses what only tables can be told where the source is none.
func (o *TableOptions) onlyTables(op, src string) error {
	if reflect.DeepEqual(*o, TableOptions{}) {
		return nil
	}
	return fault.New(fault.Usage, op, src, "it has no columns, but flags name some").
		Then("leave out the flags for csv and parquet, or set --from csv or --from parquet")
}

// columnList is a flag that lists columns.
type columnList struct {
	flag, kind string // kind: what the columns become, "" for what they hold
	names      []string
}

func (o *TableOptions) lists() []columnList {
	return []columnList{
		{"--categories", graph.CategoryColumn, o.Categories}, {"--hash", graph.HashColumn, o.Hash},
		{"--words", graph.WordsColumn, o.Words}, {"--dates", graph.DateColumn, o.Dates}, {"--features", "", o.Features},
	}
}

// asked is the kind of column that the user has asked for, "" for none.
func (o *TableOptions) asked(name string) string {
	for _, l := range o.lists() {
		if slices.Contains(l.names, name) {
			return l.kind
		}
	}
	return ""
}

// checkTable refuses flags that contradict one another.
func (o *Options) checkTable(op string) error {
	src := o.Src
	if o.SplitByTime != "" && o.Stratify || o.Split != "" && (o.SplitByTime != "" || o.asksForDraw()) {
		return fault.New(fault.Usage, op, src, "--split, --split-by-time and --stratify exclude each other").
			Then("give one of them; --split-sizes works with --split-by-time and --stratify")
	}
	if len(o.Ends) != 0 && len(o.Ends) != 2 {
		return fault.New(fault.Usage, op, src, "--ends names %d columns", len(o.Ends)).Then("name two, a source and a destination")
	}
	flags := len(o.Features) + len(o.Categories) + len(o.Hash) + len(o.Words) + len(o.Dates) + len(o.EdgeFeatures)
	if o.Like != "" && (flags > 0 || o.Standardise || o.Fill != "") {
		return fault.New(fault.Usage, op, src, "--like reuses the column settings of %s", o.Like).
			Then("leave out --features, --categories, --hash, --words, --dates, --edge-features, --standardise and --fill")
	}
	return nil
}
