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
	"siafu/internal/mapped"
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
)

const opOpen = "open dataset"

// Dataset is an open dataset folder. Its arrays are memory-mapped and read-only. They are valid
// until Close.
type Dataset struct {
	Dir     string
	Meta    *Meta
	In, Out CSR       // in-edges and out-edges; the same for an undirected graph
	Weights []float32 // weights of In.Cols, finite and above 0; nil if the edges have no weights
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
		return fmt.Errorf("its format is %d, this program reads %d, %d with weights of edges, targets or held edges, and %d with features of edges", m.Format, FormatVersion, LaterFormat, EdgeFormat)
	case m.Checksum != sum:
		return fmt.Errorf("its checksum is %q, but its content has %s", m.Checksum, sum)
	case m.Vertices < 1 || m.Vertices > maxVertices:
		return fmt.Errorf("it has %d vertices", m.Vertices)
	case m.Edges < 0 || m.FeatureDim < 1 || m.FeatureDim > maxFeatures || m.Classes < 0 || m.EdgeDim < 0 || m.EdgeDim > MaxEdgeDim:
		return fmt.Errorf("it has %d edges of %d features, %d features and %d classes", m.Edges, m.EdgeDim, m.FeatureDim, m.Classes)
	case m.FeatureKind != "dense" && m.FeatureKind != "sparse":
		return fmt.Errorf("its feature_kind is %q", m.FeatureKind)
	case !slices.Contains([]string{MultiClass, MultiLabel, Regression, Links}, m.Task):
		return fmt.Errorf("its task is %q, this program knows %s, %s, %s and %s", m.Task, MultiClass, MultiLabel, Regression, Links)
	case !m.checkLinks():
		return fmt.Errorf("its task is %s, but its held-out edges are %+v", m.Task, m.Links)
	case len(m.ClassCounts) != m.Classes:
		return fmt.Errorf("it has %d classes and counts of %d", m.Classes, len(m.ClassCounts))
	case m.ClassNames != nil && len(m.ClassNames) != m.Classes:
		return fmt.Errorf("it has %d classes and %d class names", m.Classes, len(m.ClassNames))
	}
	return nil
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

// loader fills a dataset. It keeps the first error; later reads return nil.
type loader struct {
	*Dataset
	err   error
	large int64 // files of at least as many bytes are not read
}

func (l *loader) fail(err error) { l.err = cmp.Or(l.err, err) }

// part is a file of the folder. f is nil after an error.
type part struct {
	*loader
	name string
	f    *arrayfile.File
}

// open opens a file and compares its length and checksum with meta.json.
func (l *loader) open(name, kind string) part {
	path := filepath.Join(l.Dir, name)
	info, ok := l.Meta.Files[name]
	if !ok {
		l.fail(fault.New(fault.Data, opOpen, filepath.Join(l.Dir, metaFile), "it does not list %s", name).Then(again))
		return part{loader: l}
	}
	open := arrayfile.Open
	if info.Bytes >= l.large {
		open = arrayfile.Map
	}
	f, err := open(path, kind)
	if err != nil {
		l.fail(err)
		return part{loader: l}
	}
	l.files = append(l.files, f)
	p := part{l, name, f}
	if f.Len() != info.Bytes || f.CRC32C() != info.CRC32C {
		p.bad("it has %d bytes and checksum %s, but meta.json has %d and %s", f.Len(), f.CRC32C(), info.Bytes, info.CRC32C)
	}
	return p
}

// bad records a fault in the content of the file.
func (p part) bad(format string, args ...any) {
	p.fail(fault.New(fault.Data, opOpen, filepath.Join(p.Dir, p.name), format, args...).Then(again))
}

// array returns the named array, which must have n elements.
func array[T mapped.Elem](p part, name string, n int64) []T {
	if p.err != nil {
		return nil
	}
	v, err := arrayfile.Get[T](p.f, name)
	if err != nil {
		p.fail(err)
	} else if int64(len(v)) != n {
		p.bad("array %q has %d elements, but meta.json requires %d", name, len(v), n)
	}
	return v
}

// reads reports whether the content of the file is verified.
func (p part) reads() bool { return p.err == nil && p.f.Verified() }

// ascend checks that offsets ascend from 0 to total. of names the offsets in the fault.
func (p part) ascend(of string, offsets []int64, total int64) {
	if v := badOffset(offsets, total); v >= 0 {
		p.bad("%s of vertex %d is %d", of, v, offsets[v])
	}
}

// badOffset returns the first index at which offsets do not ascend from 0 to total, or -1 if
// there is no such index.
func badOffset(offsets []int64, total int64) int {
	before := int64(0)
	for i, o := range offsets {
		if i == 0 && o != 0 || o < before || o > total {
			return i
		}
		before = o
	}
	if before != total {
		return len(offsets) - 1
	}
	return -1
}

// badID returns the index and the value of the first id that is not below limit, or -1.
func badID(ids []uint32, limit int64) (index int, id uint32) {
	for i, x := range ids {
		if int64(x) >= limit {
			return i, x
		}
	}
	return -1, 0
}

func (l *loader) features() {
	m := l.Meta
	l.Features = Features{Rows: int(m.Vertices), Dim: m.FeatureDim}
	if m.FeatureKind == "dense" {
		l.Features.Dense = array[float32](l.open(denseFile, featureKind), "dense", m.Vertices*int64(m.FeatureDim))
		return
	}
	p := l.open(sparseFile, featureKind)
	x := &SparseRows{
		Offsets: array[int64](p, "offsets", m.Vertices+1),
		Cols:    array[uint32](p, "cols", m.FeatureNNZ),
		Vals:    array[float32](p, "vals", m.FeatureNNZ),
	}
	p.ascend("offset", x.Offsets, m.FeatureNNZ)
	if p.reads() {
		if i, c := badID(x.Cols, int64(m.FeatureDim)); i >= 0 {
			p.bad("value %d has column %d of %d", i, c, m.FeatureDim)
		}
	}
	l.Features.Sparse = x
}

func (l *loader) labels() {
	m := l.Meta
	labels, split := l.open(labelFile, labelKind), l.open(splitFile, splitKind)
	l.Labels = array[int32](labels, "labels", m.Vertices)
	l.Split = array[uint8](split, "split", m.Vertices)
	if l.err != nil || labels.reads() && split.reads() && !l.checkLabels(labels, split) {
		return
	}
	if m.Task == MultiClass || m.Task == Links {
		return
	}
	targets := l.open(targetFile, targetKind)
	l.Targets = array[float32](targets, "targets", m.Vertices*int64(m.Classes))
	if !targets.reads() {
		return
	}
	if at, why := BadTarget(m.Task, l.Targets, m.Classes, l.Labels); why != "" {
		targets.bad("column %d of vertex %d is %v: %s", at%m.Classes, at/m.Classes, l.Targets[at], why)
	}
}

// checkLabels reports whether labels and split are valid, and records a fault otherwise.
func (l *loader) checkLabels(labels, split part) bool {
	for v, c := range l.Labels {
		if c < Unlabelled || int(c) >= l.Meta.Classes {
			labels.bad("vertex %d has label %d of %d classes", v, c, l.Meta.Classes)
			return false
		}
		if l.Split[v] > SplitTest {
			split.bad("vertex %d has split %d", v, l.Split[v])
			return false
		}
	}
	return true
}

func (l *loader) ids() {
	if _, ok := l.Meta.Files[idFile]; !ok {
		return
	}
	p := l.open(idFile, idKind)
	l.IDs = &IDs{}
	switch {
	case l.err != nil:
	case p.f.Has("ints"):
		l.IDs.Ints = array[int64](p, "ints", l.Meta.Vertices)
	default:
		l.IDs.Offsets = array[int64](p, "offsets", l.Meta.Vertices+1)
		var err error
		l.IDs.Text, err = arrayfile.Get[uint8](p.f, "text")
		p.fail(err)
		p.ascend("offset", l.IDs.Offsets, int64(len(l.IDs.Text)))
	}
}

// OpenIDs maps only the vertex ids of a dataset folder; ids is nil if they are 0..n-1. They are
// valid until done is called. It returns the same faults as Open.
func OpenIDs(dir string) (ids *IDs, n int64, done func() error, err error) {
	d, err := open(dir, math.MaxInt64, (*loader).ids)
	if err != nil {
		return nil, 0, nil, err
	}
	return d.IDs, d.Meta.Vertices, d.Close, nil
}

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

func (l *loader) edges() {
	p := l.open(csrFile, csrKind)
	l.In = p.csr("offsets", "cols")
	if l.Out = l.In; l.Meta.Directed {
		l.Out = p.csr("out_offsets", "out_cols")
	}
}

func (l *loader) weights() {
	if !l.Meta.Weighted {
		return
	}
	p := l.open(weightFile, weightKind)
	l.Weights = array[float32](p, "weights", l.Meta.Edges)
	if p.reads() {
		if i := BadWeight(l.Weights); i >= 0 {
			p.bad("edge %d has the weight %v", i, l.Weights[i])
		}
	}
}

func (l *loader) edgeFeatures() {
	if l.Meta.EdgeDim == 0 {
		return
	}
	p, dim := l.open(edgeFile, edgeKind), l.Meta.EdgeDim
	l.EdgeFeatures = array[float32](p, "features", l.Meta.Edges*int64(dim))
	if !p.reads() {
		return
	}
	if i := slices.IndexFunc(l.EdgeFeatures, NotFinite); i >= 0 {
		p.bad("feature %d of edge %d is %v", i%dim, i/dim, l.EdgeFeatures[i])
	}
}

func (p part) csr(offsets, cols string) CSR {
	c := CSR{
		Offsets: array[int64](p, offsets, p.Meta.Vertices+1),
		Cols:    array[uint32](p, cols, p.Meta.Edges),
	}
	p.ascend(offsets, c.Offsets, p.Meta.Edges)
	if !p.reads() {
		return c
	}
	for lo, piece := 0, arrayfile.Piece/4; lo < len(c.Cols); lo += piece {
		ids := c.Cols[lo:min(lo+piece, len(c.Cols))]
		if i, u := badID(ids, p.Meta.Vertices); i >= 0 {
			p.bad("edge %d names vertex %d of %d", lo+i, u, p.Meta.Vertices)
			break
		}
		if len(ids) == piece && p.f != nil {
			p.f.Forget(mapped.Bytes(ids))
		}
	}
	return c
}
