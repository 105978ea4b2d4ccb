package graph

import "strconv"

// CSR is a compressed sparse row matrix without values. Row r is Cols[Offsets[r]:Offsets[r+1]],
// ascending and without duplicates.
type CSR struct {
	Offsets []int64  // rows+1
	Cols    []uint32 // edges
}

// Rows returns the number of rows.
func (c CSR) Rows() int { return max(len(c.Offsets)-1, 0) }

// Row returns the columns of row r.
func (c CSR) Row(r int) []uint32 { return c.Cols[c.Offsets[r]:c.Offsets[r+1]] }

// SparseRows is a sparse matrix with values. Row r has the values Vals[Offsets[r]:Offsets[r+1]]
// in the columns Cols[Offsets[r]:Offsets[r+1]].
type SparseRows struct {
	Offsets []int64
	Cols    []uint32
	Vals    []float32
}

// Features are the input features of Rows vertices. Exactly one of Dense and Half (both [Rows x
// Dim], row-major), Sparse, Draw and NonZeros is set, unless Dim or Rows is 0.
type Features struct {
	Rows, Dim int
	Dense     []float32
	Half      []BF16
	Sparse    *SparseRows
	// Draw fills x with finite values: whole rows, starting at row first. The features need not
	// be in memory. Only Write supports Draw; it stores the features dense and does not
	// normalise them.
	Draw func(x []float32, first int)
	// NonZeros yields the finite non-zeros of row v, with columns ascending. Only Write supports NonZeros,
	// and calls it several times for each row.
	NonZeros func(v int, yield func(col uint32, x float32))
}

// Split values of a vertex.
const (
	SplitNone  = 0
	SplitTrain = 1
	SplitVal   = 2
	SplitTest  = 3
)

// Tasks define the meaning of a dataset's labels.
const (
	MultiClass = "multiclass" // one class per vertex
	MultiLabel = "multilabel" // a 1 or 0 per vertex and class
	Regression = "regression" // a number per vertex and column
	Links      = "links"      // no labels: predict edges that are held out of the graph
)

// Unlabelled is the label value of a vertex without a label.
const Unlabelled = int32(-1)

// IDs are the user's ids of the vertices: integers (Ints) or words (Text; word v is
// Text[Offsets[v]:Offsets[v+1]]). The zero value means 0..n-1.
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

// EdgeSource yields directed edges src→dst. Each may be called several times and yields the
// same edges in the same order every time. Each stops at the first error of yield and returns
// this error.
type EdgeSource interface {
	Each(yield func(src, dst uint32) error) error
}

// WeightedSource is an EdgeSource with edge weights, which are finite and above 0. The weights
// of repeated edges are added up.
type WeightedSource interface {
	EdgeSource
	EachWeight(yield func(src, dst uint32, weight float32) error) error
}

// FeaturedSource is an EdgeSource with EdgeDim finite features per edge, or no features if
// EdgeDim is 0. A feature row is valid until yield returns. weight is the edge's weight as in
// EachWeight, or 1 if the source has no weights. The features of repeated edges are averaged.
type FeaturedSource interface {
	EdgeSource
	EdgeDim() int
	EachFeatures(yield func(src, dst uint32, weight float32, features []float32) error) error
}

// Content is a whole dataset, as passed to Write by an importer or a generator.
type Content struct {
	Name       string // lower case, used in run folders; empty: name of the dataset folder
	Source     string // importer and origin of the data, for meta.json
	Licence    string // as stated by the source, may be empty
	Synthetic  bool   // set for generated graphs; every result records it
	Vertices   int64
	Edges      EdgeSource // also a WeightedSource (FeaturedSource) if edges have weights (features)
	EdgeMemory int64      // bytes for sorting edges; 0: EdgeMemory
	Symmetrise bool       // store every edge in both directions
	Features   Features
	// Normalize divides each feature row by its sum (Kipf & Welling 2017). With Relations, the rows must be divided
	// already, as JoinFeatures does.
	Normalize bool
	// FeatureFormat is the number format of dense features in the file: Float32 (or empty), or
	// Bfloat16, which Write rounds to. Sparse features and those of edges are always float32.
	FeatureFormat string
	Task          string   // empty: MultiClass
	Labels        []int32  // [Vertices], Unlabelled if unknown; with Targets, the result of TargetLabels
	Classes       int      // 0: largest label + 1; with Targets, the number of columns
	ClassNames    []string // nil or [Classes]
	// Targets [Vertices x Classes] are the labels of tasks with several columns. The row of a
	// vertex without a label is NaN.
	Targets []float32
	// TargetScaling [Classes] scales the targets of Regression during a training; nil: not scaled.
	// Targets are stored in the user's units.
	TargetScaling []Scaling
	Split         []uint8    // [Vertices], Split… values
	IDs           *IDs       // nil: 0..n-1
	Table         *Table     // nil: not imported from a table
	Relations     *Relations // nil: neither edges nor vertices have kinds. Otherwise Edges is a RelatedSource
	// EdgeImport records how an importer read the edges; nil without an importer.
	EdgeImport *EdgeImport
	// LoopsUnused means that other programs drop the self loops of this source, too. Meta.SelfLoops is then 0.
	LoopsUnused bool
	// SelfLoops and Repeated are those of the dataset with the edges, if they are of one.
	SelfLoops, Repeated int64

	HeldOut *HeldOut // for the task Links, which has no labels
}

// WriteReport counts what Write stored and dropped.
type WriteReport struct {
	Vertices, Edges  int64 // edges as stored, directed
	Duplicates       int64 // repeated edges that were dropped or, with weights, added up
	SelfLoops        int64 // edges u→u that were dropped: models add self loops
	Isolated         int64 // vertices without any edge
	Unlabelled       int64
	Train, Val, Test int64
	Links            *LinkCounts // only for the task Links
	Directed         bool
	Weighted         bool
	EdgeDim          int  // features of an edge
	Uneven           bool // directed only because weights or edge features differ between the two directions
}

// FileInfo describes a file in meta.json.
type FileInfo struct {
	Bytes  int64  `json:"bytes"`
	CRC32C string `json:"crc32c"` // of the file's header, which contains the checksums of the arrays; 8 hex digits
}

// Number formats of dense features.
const (
	Float32  = "float32"
	Bfloat16 = "bf16"
)

// Values of Meta.FeatureKind. HalfFeatures are dense features in bfloat16.
const (
	DenseFeatures  = "dense"
	HalfFeatures   = "bf16"
	SparseFeatures = "sparse"
)

// Meta is the content of meta.json.
type Meta struct {
	Format      int         `json:"format"` // FormatVersion, LaterFormat, EdgeFormat or HalfFormat
	Name        string      `json:"name"`
	Source      string      `json:"source,omitempty"`
	Licence     string      `json:"licence,omitempty"`
	Synthetic   bool        `json:"synthetic"`
	Vertices    int64       `json:"vertices"`
	Edges       int64       `json:"edges"` // directed, as stored
	Directed    bool        `json:"directed"`
	Weighted    bool        `json:"weighted,omitempty"`      // edges have weights
	EdgeDim     int         `json:"edge_features,omitempty"` // features per edge
	FeatureDim  int         `json:"feature_dim"`
	FeatureKind string      `json:"feature_kind"` // DenseFeatures, …
	FeatureNNZ  int64       `json:"feature_nnz"`
	FeatureNorm float64     `json:"feature_norm,omitempty"` // root mean square of the rows' Euclidean norms; 0: unknown
	Normalized  bool        `json:"features_row_normalized"`
	Task        string      `json:"task"` // MultiClass, …
	Classes     int         `json:"classes"`
	ClassNames  []string    `json:"class_names,omitempty"`
	ClassCounts []int64     `json:"class_counts"` // labelled vertices per class; for Regression, all labelled vertices
	Train       int64       `json:"train"`
	Val         int64       `json:"val"`
	Test        int64       `json:"test"`
	MaxInDegree int64       `json:"max_in_degree"`
	Isolated    int64       `json:"isolated"`
	SelfLoops   int64       `json:"self_loops,omitempty"` // edges u→u that were dropped, unless Content.LoopsUnused
	Repeated    int64       `json:"repeated,omitempty"`   // repeated edges that were merged; 0 if edges were symmetrised
	Links       *LinkCounts `json:"links,omitempty"`      // only for the task Links
	// TargetScaling is Content.TargetScaling.
	TargetScaling []Scaling           `json:"target_scaling,omitempty"`
	Relations     *Relations          `json:"relational,omitempty"` // nil: the graph is not relational
	Table         *Table              `json:"table,omitempty"`
	EdgeImport    *EdgeImport         `json:"edge_import,omitempty"` // nil: unknown
	Files         map[string]FileInfo `json:"files"`
	// Checksum is the CRC-32C of the other fields, in 8 hex digits.
	Checksum string `json:"checksum"`
}

// ClassName returns the name of a class, or its number if it has no name. It returns "" for the
// class of an unlabelled vertex.
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

// LaterFormat is the format of a folder with weighted edges or a task other than MultiClass.
// Programs that support neither must not read such a folder.
const LaterFormat = 2

// EdgeFormat is the format of a folder with edge features.
const EdgeFormat = 3

// HalfFormat is the format of a folder with HalfFeatures.
const HalfFormat = 4

// RelationFormat is the format of a folder with Relations.
const RelationFormat = 5
