package graph

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"siafu/internal/arrayfile"
	"siafu/internal/elementary"
	"siafu/internal/fault"
	"siafu/internal/mapped"
)

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
	switch values := m.Vertices * int64(m.FeatureDim); m.FeatureKind {
	case DenseFeatures:
		l.Features.Dense = array[float32](l.open(denseFile, featureKind), denseArray, values)
		return
	case HalfFeatures:
		l.Features.Half = array[BF16](l.open(denseFile, featureKind), halfArray, values)
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

func (l *loader) edges() {
	p := l.open(csrFile, csrKind)
	l.In = p.csr("offsets", "cols")
	if l.Out = l.In; l.Meta.Directed {
		l.Out = p.csr("out_offsets", "out_cols")
	}
	l.relations()
	if p.reads() {
		p.checkReverse(l.In, l.Out)
	}
}

// checkReverse records a fault unless the rows of in and out ascend, and out has the edges of in,
// reversed: each u→v is in row v of in and in row u of out. An undirected graph has one CSR for both.
// The rows of a relational graph ascend within a relation, which is known for in only.
//
// Design note: a transposed copy would show the same, but needs the memory of the edges. The sums
// of hashes are equal for equal edges. The random seed prevents files with other edges of the same sum.
func (p part) checkReverse(in, out CSR) {
	seed := rand.Uint64()
	sum := func(c CSR, reversed bool) (sum uint64) {
		lo := int64(0)
		for v := range uint32(c.Rows()) {
			if hi := c.Offsets[v]; hi-lo >= arrayfile.Piece/4 {
				p.f.Forget(mapped.Bytes(c.Cols[lo:hi]))
				lo = hi
			}
			before := int64(-1)
			for i, u := range c.Row(int(v)) {
				order := int64(u)
				if p.Relations != nil {
					if order = before + 1; !reversed {
						order = int64(p.Relations[c.Offsets[v]+int64(i)])<<32 | int64(u)
					}
				}
				if order <= before || u == v {
					p.bad("the neighbours of vertex %d do not ascend, or include the vertex", v)
					return 0
				}
				before = order
				key := uint64(u)<<32 | uint64(v)
				if reversed {
					key = bits.RotateLeft64(key, 32)
				}
				sum += elementary.Mix(key ^ seed)
			}
		}
		return sum
	}
	if forward, backward := sum(in, false), sum(out, true); p.err == nil && forward != backward {
		p.bad("its edges differ between the two directions, but meta.json has directed=%t", p.Meta.Directed)
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
