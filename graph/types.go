package graph

import "strconv"

// CSR is a compressed sparse row matrix without values. Row r holds
// Cols[Offsets[r]:Offsets[r+1]], ascending and without duplicates.
type CSR struct {
	Offsets []int64  // rows+1
	Cols    []uint32 // edges
}

// Rows returns the number of rows.
func (c CSR) Rows() int { return max(len(c.Offsets)-1, 0) }

// Row returns the columns of row r.
func (c CSR) Row(r int) []uint32 { return c.Cols[c.Offsets[r]:c.Offsets[r+1]] }

// SparseRows is a sparse matrix with values: row r holds
// Vals[Offsets[r]:Offsets[r+1]] in the columns Cols[same].
type SparseRows struct {
	Offsets []int64
	Cols    []uint32
	Vals    []float32
}

// Features are the input features of Rows vertices: exactly one of Dense
// ([Rows x Dim], row-major), Sparse and Draw is set, unless Dim or Rows is 0.
type Features struct {
	Rows, Dim int
	Dense     []float32
	Sparse    *SparseRows
	// Draw fills x with finite values, whole rows from row first on: features that need
	// not be in memory. Only Write knows it; it stores them dense and not normalised.
	Draw func(x []float32, first int)
}

// Split values of a vertex.
const (
	SplitNone  = 0
	SplitTrain = 1
	SplitVal   = 2
	SplitTest  = 3
)

// Tasks: what the labels of a dataset are.
const (
	MultiClass = "multiclass" // one of the classes
	MultiLabel = "multilabel" // for each of the classes 1 or 0: any number of them
	Regression = "regression" // for each of the columns a number
	Links      = "links"      // none: edges are held out of the graph, and predicted
)

// Unlabelled is the label of a vertex that has none.
const Unlabelled = int32(-1)

// IDs are the ids by which a dataset's user knows its vertices: whole numbers
// (Ints), or words (Text, word v being Text[Offsets[v]:Offsets[v+1]]). The
// zero value stands for 0..n-1.
type IDs struct {
	Ints    []int64
	Offsets []int64
	Text    []byte
}

// At returns the user's id of vertex v.
func (d *IDs) At(v int) string {
	switch {
	case d != nil && d.Ints != nil:
		return strconv.FormatInt(d.Ints[v], 10)
	case d != nil && d.Offsets != nil:
		return string(d.Text[d.Offsets[v]:d.Offsets[v+1]])
	}
	return strconv.Itoa(v)
}

// EdgeSource yields directed edges src→dst. Each may be called several times
// and yields the same edges in the same order every time; it stops at the
// first error of yield and returns it.
type EdgeSource interface {
	Each(yield func(src, dst uint32) error) error
}

// WeightedSource is an EdgeSource whose edges have weights, finite and above 0. Those of
// edges that come more than once are added up.
type WeightedSource interface {
	EdgeSource
	EachWeight(yield func(src, dst uint32, weight float32) error) error
}

// FeaturedSource is an EdgeSource whose edges have features: EdgeDim finite numbers each,
// or none where that is 0. A row stands until yield returns. weight is that of EachWeight,
// and 1 where the source has none. Of edges that come more than once, features are the mean.
type FeaturedSource interface {
	EdgeSource
	EdgeDim() int
	EachFeatures(yield func(src, dst uint32, weight float32, features []float32) error) error
}

// Content is a whole dataset as an importer or a generator hands it over.
type Content struct {
	Name       string // lower case, used in run folders; empty: that of the dataset folder
	Source     string // importer and where the data came from, for meta.json
	Licence    string // as the source states it, may be empty
	Synthetic  bool   // true for generated graphs; every result says so
	Vertices   int64
	Edges      EdgeSource // a WeightedSource where edges have weights, a FeaturedSource where they have features
	EdgeMemory int64      // bytes for edges while they are sorted; 0: EdgeMemory
	Symmetrise bool       // store every edge in both directions
	Features   Features
	Normalize  bool     // divide each feature row by its sum (Kipf & Welling 2017)
	Task       string   // empty: MultiClass
	Labels     []int32  // [Vertices], Unlabelled where unknown; of Targets, whose rows say so, TargetLabels
	Classes    int      // 0: largest label + 1; of Targets, their columns
	ClassNames []string // nil or [Classes]
	// Targets [Vertices x Classes] are the labels of the tasks that have several columns;
	// rows of NaN are those of vertices without a label.
	Targets []float32
	Split   []uint8 // [Vertices], Split… values
	IDs     *IDs    // nil: 0..n-1
	Table   *Table  // nil: it was no table
	// EdgeImport says how an importer read the edges; nil: no importer did.
	EdgeImport *EdgeImport
	HeldOut    *HeldOut // of the task Links, which has no labels
}

// WriteReport counts what Write kept and dropped.
type WriteReport struct {
	Vertices, Edges  int64 // edges as stored, directed
	Duplicates       int64 // edges dropped, or with weights added up, because they came twice
	SelfLoops        int64 // edges u→u dropped: models add their own
	Isolated         int64 // vertices without any edge
	Unlabelled       int64
	Train, Val, Test int64
	Links            *LinkCounts // of the task Links
	Directed         bool
	Weighted         bool
	EdgeDim          int  // features of an edge
	Uneven           bool // directed for its weights or features of edges alone: every edge goes both ways
}

// FileInfo is the record of a file in meta.json.
type FileInfo struct {
	Bytes  int64  `json:"bytes"`
	CRC32C string `json:"crc32c"` // of its header, which holds those of its arrays; 8 hex digits
}

// Meta is meta.json.
type Meta struct {
	Format      int                 `json:"format"` // FormatVersion, LaterFormat or EdgeFormat
	Name        string              `json:"name"`
	Source      string              `json:"source,omitempty"`
	Licence     string              `json:"licence,omitempty"`
	Synthetic   bool                `json:"synthetic"`
	Vertices    int64               `json:"vertices"`
	Edges       int64               `json:"edges"` // directed, as stored
	Directed    bool                `json:"directed"`
	Weighted    bool                `json:"weighted,omitempty"`      // edges have weights
	EdgeDim     int                 `json:"edge_features,omitempty"` // of an edge
	FeatureDim  int                 `json:"feature_dim"`
	FeatureKind string              `json:"feature_kind"` // "dense" or "sparse"
	FeatureNNZ  int64               `json:"feature_nnz"`
	FeatureNorm float64             `json:"feature_norm,omitempty"` // root mean square of the rows' Euclidean norms; 0: unknown
	Normalized  bool                `json:"features_row_normalized"`
	Task        string              `json:"task"` // MultiClass, …
	Classes     int                 `json:"classes"`
	ClassNames  []string            `json:"class_names,omitempty"`
	ClassCounts []int64             `json:"class_counts"` // vertices with the label; of Regression, with any
	Train       int64               `json:"train"`
	Val         int64               `json:"val"`
	Test        int64               `json:"test"`
	MaxInDegree int64               `json:"max_in_degree"`
	Isolated    int64               `json:"isolated"`
	Links       *LinkCounts         `json:"links,omitempty"` // of the task Links
	Table       *Table              `json:"table,omitempty"`
	EdgeImport  *EdgeImport         `json:"edge_import,omitempty"` // nil: unknown
	Files       map[string]FileInfo `json:"files"`
	// Checksum is the CRC-32C of the other fields, in 8 hex digits.
	Checksum string `json:"checksum"`
}

// ClassName returns the name of a class, its number where it has none, and empty for
// that of a vertex without a label.
func (m *Meta) ClassName(class int64) string {
	switch {
	case class < 0:
		return ""
	case class < int64(len(m.ClassNames)):
		return m.ClassNames[class]
	}
	return strconv.FormatInt(class, 10)
}

// FormatVersion is the version of the dataset folder that this package writes.
const FormatVersion = 1

// LaterFormat is the format of a folder with weighted edges or a task other than MultiClass,
// which programs that know neither must not read.
const LaterFormat = 2

// EdgeFormat is the format of a folder with edge features.
const EdgeFormat = 3
