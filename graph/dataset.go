package graph

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"siafu/internal/arrayfile"
	"siafu/internal/fault"
)

// Files of a dataset folder. Meta.FeatureKind selects the feature file. weights.bin exists if
// Meta.Weighted is set, edge_features.bin if Meta.EdgeDim is not 0. ids.bin does not exist if
// the ids are 0..n-1.
const (
	metaFile   = "meta.json"
	csrFile    = "graph.csr"
	weightFile = "weights.bin"
	edgeFile   = "edge_features.bin"
	denseFile  = "features.bin"
	sparseFile = "features.csr"
	labelFile  = "labels.bin"
	splitFile  = "split.bin"
	targetFile = "targets.bin" // only for tasks with targets
	idFile     = "ids.bin"

	relationFile = "relations.bin" // only if Meta.Relations is set
)

// Kinds of the array files.
const (
	csrKind     = "siafu.csr"
	weightKind  = "siafu.weights"
	edgeKind    = "siafu.edges"
	featureKind = "siafu.features"
	labelKind   = "siafu.labels"
	splitKind   = "siafu.split"
	targetKind  = "siafu.targets"
	idKind      = "siafu.ids"

	relationKind = "siafu.relations"
)

const opOpen = "open dataset"

// Dataset is an open dataset folder. Its arrays are memory-mapped and read-only. They are valid
// until Close.
type Dataset struct {
	Dir  string
	Meta *Meta
	// In and Out are in-edges and out-edges; the same for an undirected graph. The edges of a row of a
	// relational graph are ordered by relation and then by column. A column may occur once per relation.
	In, Out   CSR
	Relations []uint16  // relations of In.Cols; nil if the graph is not relational
	Weights   []float32 // weights of In.Cols, finite and above 0; nil if the edges have no weights
	// EdgeFeatures [edges x Meta.EdgeDim] are the finite features of In.Cols, or nil if the
	// edges have no features.
	EdgeFeatures []float32

	Features Features
	Labels   []int32
	Targets  []float32 // as in Content.Targets; if set, each label is 0 or Unlabelled
	Split    []uint8
	IDs      *IDs

	files []*arrayfile.File
}

// ReadMeta reads meta.json and no other file of the folder.
func ReadMeta(dir string) (*Meta, error) {
	path := filepath.Join(dir, metaFile)
	text, err := os.ReadFile(path)
	if err != nil {
		f := fault.System(opOpen, path, err)
		if f.Kind == fault.Missing {
			f = f.Then("%s is not a dataset folder; create one with siafu import, generate or download", dir)
		}
		return nil, f
	}
	var m Meta
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return nil, fault.New(fault.Data, opOpen, path, "%v (byte %d)", err, d.InputOffset()).Then(again)
	}
	if err := m.check(); err != nil {
		return nil, fault.New(fault.Data, opOpen, path, "%v", err).Then(again)
	}
	return &m, nil
}

// again is the remedy for a damaged dataset.
const again = "import the dataset again"

// sum returns the checksum of all fields except Checksum.
func (m Meta) sum() (string, error) {
	m.Checksum = ""
	text, err := json.Marshal(m)
	return fmt.Sprintf("%08x", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli))), err
}

// version returns the format version that a folder with this content needs.
func (m *Meta) version() int {
	switch {
	case m.Relations != nil:
		return RelationFormat
	case m.FeatureKind == HalfFeatures:
		return HalfFormat
	case m.EdgeDim > 0:
		return EdgeFormat
	case m.Weighted || m.Task != MultiClass:
		return LaterFormat
	}
	return FormatVersion
}

func (m *Meta) check() error {
	sum, err := m.sum()
	if err != nil {
		return err
	}
	switch {
	case m.Format != m.version():
		return fmt.Errorf("its format is %d, this program reads %d, %d with weights of edges, targets or held edges, %d with features of "+
			"edges, %d with features in bfloat16, and %d with relations", m.Format, FormatVersion, LaterFormat, EdgeFormat, HalfFormat,
			RelationFormat)
	case m.Checksum != sum:
		return fmt.Errorf("its checksum is %q, but its content has %s", m.Checksum, sum)
	case m.Vertices < 1 || m.Vertices > maxVertices:
		return fmt.Errorf("it has %d vertices", m.Vertices)
	case m.Edges < 0 || m.FeatureDim < 1 || m.FeatureDim > maxFeatures || m.Classes < 0 || m.EdgeDim < 0 || m.EdgeDim > MaxEdgeDim:
		return fmt.Errorf("it has %d edges of %d features, %d features and %d classes", m.Edges, m.EdgeDim, m.FeatureDim, m.Classes)
	case !slices.Contains([]string{DenseFeatures, HalfFeatures, SparseFeatures}, m.FeatureKind):
		return fmt.Errorf("its feature_kind is %q", m.FeatureKind)
	case !slices.Contains([]string{MultiClass, MultiLabel, Regression, Links}, m.Task):
		return fmt.Errorf("its task is %q, this program knows %s, %s, %s and %s", m.Task, MultiClass, MultiLabel, Regression, Links)
	case !m.checkLinks():
		return fmt.Errorf("its task is %s, but its held-out edges are %+v", m.Task, m.Links)
	case len(m.ClassCounts) != m.Classes:
		return fmt.Errorf("it has %d classes and counts of %d", m.Classes, len(m.ClassCounts))
	case BadScaling(m.TargetScaling, m.Task, m.Classes):
		return fmt.Errorf("its target_scaling %v does not scale the %d columns of a regression", m.TargetScaling, m.Classes)
	case m.ClassNames != nil && len(m.ClassNames) != m.Classes:
		return fmt.Errorf("it has %d classes and %d class names", m.Classes, len(m.ClassNames))
	}
	if err := m.Relations.check(m.Vertices, m.FeatureDim); err != nil {
		return err
	}
	if err := m.Schema().Check(); err != nil || m.Table == nil || m.Table.Features() == m.FeatureDim {
		return err
	}
	return fmt.Errorf("its columns have %d features, but feature_dim is %d", m.Table.Features(), m.FeatureDim)
}

// Fingerprint returns a hash over the checksums of the dataset's files. It identifies the
// dataset.
func (m *Meta) Fingerprint() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		fmt.Fprintf(h, "%s %d %s\n", name, m.Files[name].Bytes, m.Files[name].CRC32C)
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}

// Open maps a dataset folder and verifies all checksums and array lengths. Faults have kind
// Missing, Data or IO.
func Open(dir string) (*Dataset, error) {
	return Map(dir, math.MaxInt64)
}

// all opens all files.
func (l *loader) all() {
	for _, step := range []func(){l.edges, l.weights, l.edgeFeatures, l.features, l.labels, l.ids} {
		if l.err == nil {
			step()
		}
	}
}

// Map is Open without reading large files: it verifies meta.json, the headers and lengths of all
// files, the offsets of edges and sparse features, and the content of files of less than large bytes.
// Other ids and labels must be checked before they are used (Verified, CheckRows).
func Map(dir string, large int64) (*Dataset, error) {
	return open(dir, large, (*loader).all)
}

// Verified reports whether the contents of all files have been verified.
func (d *Dataset) Verified() bool {
	return !slices.ContainsFunc(d.files, func(f *arrayfile.File) bool { return !f.Verified() })
}

// CheckRows returns a fault of kind Data if the in-edges, sparse features, labels or split of vertices
// [lo, hi) are invalid. It reads only these rows.
func (d *Dataset) CheckRows(lo, hi int) error {
	bad := func(name, format string, args ...any) error {
		return fault.New(fault.Data, opOpen, filepath.Join(d.Dir, name), format, args...).Then(again)
	}
	if i, u := badID(d.In.Cols[d.In.Offsets[lo]:d.In.Offsets[hi]], d.Meta.Vertices); i >= 0 {
		return bad(csrFile, "edge %d names vertex %d of %d", d.In.Offsets[lo]+int64(i), u, d.Meta.Vertices)
	}
	if x := d.Features.Sparse; x != nil {
		if i, c := badID(x.Cols[x.Offsets[lo]:x.Offsets[hi]], int64(d.Meta.FeatureDim)); i >= 0 {
			return bad(sparseFile, "value %d has column %d of %d", x.Offsets[lo]+int64(i), c, d.Meta.FeatureDim)
		}
	}
	for v := lo; v < hi; v++ {
		if c := d.Labels[v]; c < Unlabelled || int(c) >= d.Meta.Classes || d.Split[v] > SplitTest {
			return bad(labelFile, "vertex %d has label %d of %d classes and split %d", v, c, d.Meta.Classes, d.Split[v])
		}
	}
	return nil
}

// open opens the files of a dataset folder that load reads.
func open(dir string, large int64, load func(*loader)) (*Dataset, error) {
	m, err := ReadMeta(dir)
	if err != nil {
		return nil, err
	}
	l := loader{Dataset: &Dataset{Dir: dir, Meta: m}, large: large}
	if load(&l); l.err != nil {
		l.Close()
		return nil, l.err
	}
	return l.Dataset, nil
}

// OpenIDs opens a dataset folder with Meta and IDs only. It returns the same faults as Open.
func OpenIDs(dir string) (*Dataset, error) { return open(dir, math.MaxInt64, (*loader).ids) }

// Forget removes the pages of an array, or of a part of it, from this process's memory until they are
// read again. It ignores memory outside the files.
func (d *Dataset) Forget(part []byte) {
	for _, f := range d.files {
		f.Forget(part)
	}
}

// Close unmaps everything.
func (d *Dataset) Close() error {
	var first error
	for _, f := range d.files {
		first = cmp.Or(first, f.Close())
	}
	d.files = nil
	return first
}
