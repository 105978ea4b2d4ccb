package importers

import (
	"slices"
	"strings"

	"siafu/graph"
)

// TableOptions are the additional options of an import of tables: the meaning of columns
// and their conversion to features.
type TableOptions struct {
	Nodes            string   `placeholder:"FILE" help:"Vertex table in SRC (${tables=}). Empty: nodes.csv, .tsv or .parquet."`
	Edges            string   `placeholder:"FILE" help:"Edge table in SRC (${tables=}). Empty: edges.csv, .tsv or .parquet."`
	ID               string   `placeholder:"COLUMN" help:"Column of the vertex ids (${tables=}). Empty: id."`
	Label            string   `placeholder:"COLUMN" help:"Column of the labels (${tables=}). A,B,C: several columns with a number in each. KIND.COLUMN: of one kind of vertices. Empty: label."`
	Features         []string `placeholder:"A,B" help:"Feature columns (${tables=}). Empty: all other columns."`
	Ends             []string `placeholder:"A,B" help:"Columns of an edge's source and destination (${tables=}). Empty: src,dst."`
	Relation         string   `placeholder:"COLUMN" help:"Column of the edge table with the name of an edge's relation (${tables=}). The graph becomes relational, with one kind of vertices."`
	Featureless      string   `enum:"auto,ids,mean,none" default:"auto" help:"Features of kinds of vertices without feature columns: auto, ids, mean or none (${tables=}). ids: one for each vertex, so that its weights are a learned embedding; mean: means of the neighbours' features; none: only a 1. auto: ids for kinds of at most 10,000 vertices, else mean if neighbours have features."`
	Weight           string   `placeholder:"COLUMN" help:"Column of the edge weights (${tables=}). Empty: weight, if it exists."`
	EdgeFeatures     []string `name:"edge-features" placeholder:"A,B" help:"Source of edge features. Numeric columns (${tables=}), an array (npz, torch, dgl), or some of field,version,alternative (debian)."`
	DropEdgeFeatures bool     `name:"drop-edge-features" help:"Ignore edge features (${featured=})."`
	DropWeights      bool     `help:"Ignore edge weights. Formats: ${weighted=}."`
	DropUnknown      bool     `help:"Drop edges whose ends are not in the vertex table (${tables=})."`
	Standardise      bool     `help:"Scale numbers (${tables=}) and the targets of a regression (every format) to mean 0 and standard deviation 1. Statistics are over the training rows; for edge features over all edges. Predictions and metrics are in the targets' own units."`
	Drop             []string `placeholder:"A,B" help:"Columns of the vertex table that are not features (${tables=})."`
	Missing          []string `placeholder:"A,B" help:"Texts of cells without a value, in any case (${tables=}). Empty: NA, NaN, NULL, None, unknown, -, ? and the other texts of docs/importing.md."`
	Fill             string   `enum:",mean,zero" default:"" help:"Value for missing numbers: mean or zero (${tables=}). mean: over the training rows, or over all edges. Empty: missing cells are an error."`
	Categories       []string `placeholder:"A,B" help:"Columns to one-hot encode, also numeric ones (${tables=})."`
	Hash             []string `placeholder:"A,B" help:"Columns to hash into 64 features each (${tables=})."`
	Words            []string `placeholder:"A,B" help:"Text columns to encode by words (${tables=}). Each of the 1,000 most frequent words is one feature."`
	Dates            []string `placeholder:"A,B" help:"Date columns, also numeric ones (${tables=}). Numbers: 20240514, or s, ms, µs or ns since 1970. Dates such as 2024-05-14 are detected without the flag."`
	SplitByTime      string   `name:"split-by-time" placeholder:"COLUMN" help:"Column of dates or numbers that orders the split (${tables=}). The oldest labelled vertices are for training, the next for validation, the newest for the test. Sizes: --split-sizes."`
	Like             string   `placeholder:"RUN" help:"Run folder or dataset whose table schema is used (${tables=}). The schema has columns, scaling, classes, edge directions and weights."`
}

// columnList is a flag that lists columns.
type columnList struct {
	flag, kind string // kind: the requested kind of the columns, "" by contents
	names      []string
}

func (o *TableOptions) lists() []columnList {
	return []columnList{
		{"--categories", graph.CategoryColumn, o.Categories}, {"--hash", graph.HashColumn, o.Hash},
		{"--words", graph.WordsColumn, o.Words}, {"--dates", graph.DateColumn, o.Dates}, {"--drop", "", o.Drop},
		{"--features", "", o.Features},
	}
}

// asked returns the kind of column that the user has requested, "" for none.
func (o *TableOptions) asked(name string) string {
	for _, l := range o.lists() {
		if slices.Contains(l.names, name) {
			return l.kind
		}
	}
	return ""
}

// isSet reports whether a flag of the default auto has another value.
func isSet(value string) bool { return value != "" && value != "auto" }

func (o *Options) checkTable(at input) {
	if o.SplitByTime != "" && o.Stratify || o.Split != "" && (o.SplitByTime != "" || o.asksForDraw()) {
		at.refuse("give one of them; --split-sizes works with --split-by-time and --stratify",
			"--split, --split-by-time and --stratify exclude each other")
	}
	if len(o.Ends) != 0 && len(o.Ends) != 2 {
		at.refuse("name two, a source and a destination", "--ends names %d columns", len(o.Ends))
	}
	flags := len(o.Features) + len(o.Categories) + len(o.Hash) + len(o.Words) + len(o.Dates) +
		len(o.EdgeFeatures) + len(o.Drop) + len(o.Missing)
	if o.Like != "" && (flags > 0 || o.Standardise || o.Fill != "" || isSet(o.Featureless) || isSet(o.ReverseRelations)) {
		at.refuse("leave out --features, --drop, --missing, --categories, --hash, --words, --dates, "+
			"--edge-features, --standardise, --fill, --featureless and --reverse-relations",
			"--like reuses the column settings of %s", o.Like)
	}
}

// applyLike replaces the options that change a network's input by the options of --like, and
// refuses contradicting flags. Options that an older version did not record keep the flags'
// values.
func (im *tableImport) applyLike() {
	like, edges := im.like, im.like.EdgeImport
	// contradiction refuses a flag that contradicts --like.
	contradiction := func(is bool, flag, there, remedy string) {
		if is {
			im.resources.refuse(remedy, "%s contradicts --like=%s, where %s", flag, im.TableOptions.Like, there)
		}
	}
	contradiction(im.Normalize && !like.Normalized, "--normalize-features", "features are not divided by their sums",
		"leave --normalize-features out")
	im.Normalize = like.Normalized
	if edges == nil {
		im.Log("warning: like=%s does not record --symmetrise, --weight, --drop-weights and --ends: give those of the import of the "+
			"training data", im.TableOptions.Like)
		return
	}
	const rename = "; rename the column if the table of edges calls it differently"
	column := "none"
	if edges.Weight != "" {
		column = `"` + edges.Weight + `"`
	}
	contradiction(im.Relation != "" && im.Relation != edges.Relation, "--relation="+im.Relation, "the column of relations is another",
		"leave --relation out"+rename)
	contradiction(im.Symmetrise && like.Directed, "--symmetrise", "edges are stored in one direction", "leave --symmetrise out")
	contradiction(im.DropWeights && like.Weighted, "--drop-weights", "edges have weights", "leave --drop-weights out")
	contradiction(im.Weight != "" && im.Weight != edges.Weight, "--weight="+im.Weight,
		"the column of weights is "+column, "leave --weight out"+rename)
	contradiction(len(im.Ends) > 0 && !slices.Equal(im.Ends, edges.Ends),
		"--ends="+strings.Join(im.Ends, ","), "edges go from column "+strings.Join(edges.Ends, " to "), "leave --ends out"+rename)
	im.Relation = edges.Relation
	im.Symmetrise, im.DropWeights, im.Ends = im.Symmetrise || edges.Symmetrised, im.DropWeights || edges.WeightsDropped, edges.Ends
}

// findLike uses the column of weights that --like records, and records the columns in use.
func (e *edgeTable) findLike() {
	if e.im.like != nil && e.im.like.EdgeImport != nil {
		name := e.im.like.EdgeImport.Weight
		if e.weight = -1; name != "" {
			e.weight = e.column(name)
		}
		if e.im.like.Weighted {
			e.weight = e.needs(name, "its name in "+e.im.TableOptions.Like)
		}
	}
	e.im.edges = graph.EdgeImport{WeightsDropped: e.im.DropWeights, Ends: []string{e.names[e.ends[0]], e.names[e.ends[1]]}}
	if e.weight >= 0 {
		e.im.edges.Weight = e.names[e.weight]
	}
}
