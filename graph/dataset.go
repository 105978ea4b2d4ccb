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
	"os"
	"path/filepath"
	"slices"

	"siafu/graph/arrayfile"
	"siafu/graph/fault"
	"siafu/graph/mapped"
)

// Files of a dataset folder. Which of the two feature files is there is told
// by Meta.FeatureKind; ids.bin is absent where ids are 0..n-1.
const (
	metaFile   = "meta.json"
	csrFile    = "graph.csr"
	denseFile  = "features.bin"
	sparseFile = "features.csr"
	labelFile  = "labels.bin"
	splitFile  = "split.bin"
	idFile     = "ids.bin"
)

// Kinds of the array files.
const (
	csrKind     = "siafu.csr"
	featureKind = "siafu.features"
	labelKind   = "siafu.labels"
	splitKind   = "siafu.split"
	idKind      = "siafu.ids"
)

const opOpen = "open dataset"

// Dataset is an open dataset folder. Its arrays are mapped: they stand until
// Close and must not be written to.
type Dataset struct {
	Dir      string
	Meta     *Meta
	In, Out  CSR // in-edges and out-edges; the same for an undirected graph
	Features Features
	Labels   []int32
	Split    []uint8
	IDs      *IDs

	files []*arrayfile.File
}

// ReadMeta reads meta.json alone.
func ReadMeta(dir string) (*Meta, error) {
	path := filepath.Join(dir, metaFile)
	text, err := os.ReadFile(path)
	if err != nil {
		f := fault.System(opOpen, path, err)
		if f.Kind == fault.Missing {
			f = f.Then("%s is no dataset folder; make one with siafu import, generate or download", dir)
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

// again is the remedy for every damaged dataset.
const again = "import the dataset again"

// sum is the checksum of every field but Checksum.
func (m Meta) sum() (string, error) {
	m.Checksum = ""
	text, err := json.Marshal(m)
	return fmt.Sprintf("%08x", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli))), err
}

func (m *Meta) check() error {
	sum, err := m.sum()
	if err != nil {
		return err
	}
	switch {
	case m.Format != FormatVersion:
		return fmt.Errorf("its format is %d, this program reads %d", m.Format, FormatVersion)
	case m.Checksum != sum:
		return fmt.Errorf("its checksum is %q where its content gives %s", m.Checksum, sum)
	case m.Vertices < 1 || m.Vertices > maxVertices:
		return fmt.Errorf("it has %d vertices", m.Vertices)
	case m.Edges < 0 || m.FeatureDim < 1 || m.FeatureDim > maxFeatures || m.Classes < 1:
		return fmt.Errorf("it has %d edges, %d features and %d classes", m.Edges, m.FeatureDim, m.Classes)
	case m.FeatureKind != "dense" && m.FeatureKind != "sparse":
		return fmt.Errorf("its feature_kind is %q", m.FeatureKind)
	case m.Task != "multiclass":
		return fmt.Errorf("its task is %q, this program knows multiclass", m.Task)
	case len(m.ClassCounts) != m.Classes:
		return fmt.Errorf("it has %d classes and counts of %d", m.Classes, len(m.ClassCounts))
	case m.ClassNames != nil && len(m.ClassNames) != m.Classes:
		return fmt.Errorf("it has %d classes and %d class names", m.Classes, len(m.ClassNames))
	}
	return nil
}

// Fingerprint tells datasets apart: a hash over the checksums of their files.
func (m *Meta) Fingerprint() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		fmt.Fprintf(h, "%s %d %s\n", name, m.Files[name].Bytes, m.Files[name].CRC32C)
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}

// Open maps a dataset folder and verifies every checksum and every length in
// it. Faults have kind Missing, Data or IO.
func Open(dir string) (*Dataset, error) {
	m, err := ReadMeta(dir)
	if err != nil {
		return nil, err
	}
	d := &Dataset{Dir: dir, Meta: m}
	if err := d.load(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Dataset) load() error {
	for _, step := range []func() error{d.loadEdges, d.loadFeatures, d.loadLabels, d.loadIDs} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// file opens one file of the folder and compares it with meta.json.
func (d *Dataset) file(name, kind string) (*arrayfile.File, error) {
	path := filepath.Join(d.Dir, name)
	info, ok := d.Meta.Files[name]
	if !ok {
		return nil, fault.New(fault.Data, opOpen, filepath.Join(d.Dir, metaFile), "it does not list %s", name).Then(again)
	}
	f, err := arrayfile.Open(path, kind)
	if err != nil {
		return nil, err
	}
	d.files = append(d.files, f)
	if f.Len() != info.Bytes || f.CRC32C() != info.CRC32C {
		return nil, fault.New(fault.Data, opOpen, path, "it has %d bytes and checksum %s where meta.json says %d and %s",
			f.Len(), f.CRC32C(), info.Bytes, info.CRC32C).Then(again)
	}
	return f, nil
}

// array is a named array of a file that must have n elements.
func array[T mapped.Elem](d *Dataset, f *arrayfile.File, file, name string, n int64) ([]T, error) {
	v, err := arrayfile.Get[T](f, name)
	if err != nil {
		return nil, err
	}
	if int64(len(v)) != n {
		return nil, d.bad(file, "array %q has %d elements where meta.json asks for %d", name, len(v), n)
	}
	return v, nil
}

func (d *Dataset) bad(file, format string, args ...any) error {
	return fault.New(fault.Data, opOpen, filepath.Join(d.Dir, file), format, args...).Then(again)
}

func (d *Dataset) loadEdges() error {
	f, err := d.file(csrFile, csrKind)
	if err != nil {
		return err
	}
	if d.In, err = d.csr(f, "offsets", "cols"); err != nil {
		return err
	}
	if d.Out = d.In; d.Meta.Directed {
		d.Out, err = d.csr(f, "out_offsets", "out_cols")
	}
	return err
}

func (d *Dataset) csr(f *arrayfile.File, offsets, cols string) (CSR, error) {
	var c CSR
	var err error
	if c.Offsets, err = array[int64](d, f, csrFile, offsets, d.Meta.Vertices+1); err != nil {
		return c, err
	}
	if c.Cols, err = array[uint32](d, f, csrFile, cols, d.Meta.Edges); err != nil {
		return c, err
	}
	if v := badOffset(c.Offsets, d.Meta.Edges); v >= 0 {
		return c, d.bad(csrFile, "%s of vertex %d is %d", offsets, v, c.Offsets[v])
	}
	for i, u := range c.Cols {
		if int64(u) >= d.Meta.Vertices {
			return c, d.bad(csrFile, "edge %d names vertex %d of %d", i, u, d.Meta.Vertices)
		}
	}
	return c, nil
}

// badOffset is the first index at which offsets do not ascend from 0 to total,
// -1 where there is none.
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

func (d *Dataset) loadFeatures() error {
	m := d.Meta
	d.Features = Features{Rows: int(m.Vertices), Dim: m.FeatureDim}
	if m.FeatureKind == "dense" {
		f, err := d.file(denseFile, featureKind)
		if err != nil {
			return err
		}
		d.Features.Dense, err = array[float32](d, f, denseFile, "dense", m.Vertices*int64(m.FeatureDim))
		return err
	}
	f, err := d.file(sparseFile, featureKind)
	if err != nil {
		return err
	}
	x := &SparseRows{}
	if x.Offsets, err = array[int64](d, f, sparseFile, "offsets", m.Vertices+1); err != nil {
		return err
	}
	if x.Cols, err = array[uint32](d, f, sparseFile, "cols", m.FeatureNNZ); err != nil {
		return err
	}
	if x.Vals, err = array[float32](d, f, sparseFile, "vals", m.FeatureNNZ); err != nil {
		return err
	}
	if v := badOffset(x.Offsets, m.FeatureNNZ); v >= 0 {
		return d.bad(sparseFile, "offset of vertex %d is %d", v, x.Offsets[v])
	}
	for i, c := range x.Cols {
		if int64(c) >= int64(m.FeatureDim) {
			return d.bad(sparseFile, "value %d is in column %d of %d", i, c, m.FeatureDim)
		}
	}
	d.Features.Sparse = x
	return nil
}

func (d *Dataset) loadLabels() error {
	f, err := d.file(labelFile, labelKind)
	if err != nil {
		return err
	}
	if d.Labels, err = array[int32](d, f, labelFile, "labels", d.Meta.Vertices); err != nil {
		return err
	}
	if f, err = d.file(splitFile, splitKind); err != nil {
		return err
	}
	if d.Split, err = array[uint8](d, f, splitFile, "split", d.Meta.Vertices); err != nil {
		return err
	}
	for v, l := range d.Labels {
		if l < Unlabelled || int(l) >= d.Meta.Classes {
			return d.bad(labelFile, "vertex %d has label %d of %d classes", v, l, d.Meta.Classes)
		}
		if d.Split[v] > SplitTest {
			return d.bad(splitFile, "vertex %d has split %d", v, d.Split[v])
		}
	}
	return nil
}

func (d *Dataset) loadIDs() error {
	if _, ok := d.Meta.Files[idFile]; !ok {
		return nil
	}
	f, err := d.file(idFile, idKind)
	if err != nil {
		return err
	}
	d.IDs = &IDs{}
	if f.Has("ints") {
		d.IDs.Ints, err = array[int64](d, f, idFile, "ints", d.Meta.Vertices)
		return err
	}
	if d.IDs.Offsets, err = array[int64](d, f, idFile, "offsets", d.Meta.Vertices+1); err != nil {
		return err
	}
	if d.IDs.Text, err = arrayfile.Get[uint8](f, "text"); err != nil {
		return err
	}
	if v := badOffset(d.IDs.Offsets, int64(len(d.IDs.Text))); v >= 0 {
		return d.bad(idFile, "offset of vertex %d is %d", v, d.IDs.Offsets[v])
	}
	return nil
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
