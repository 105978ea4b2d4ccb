package graph

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"

	"siafu/internal/arrayfile"
	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/mapped"
)

// sparseBelow is the fraction of non-zeros below which features are stored sparse. A non-zero
// takes 8 bytes in sparse and 4 bytes in dense storage. Sparse products skip zeros.
const sparseBelow = 0.25

// Write validates a content and writes it as the dataset folder dir. The folder appears complete
// or not at all (atomic rename). With force, Write replaces an existing dataset folder, subject
// to CheckTarget. Faults have kind Data for the content, Usage for an existing folder, and IO.
func Write(dir string, c Content, force bool) (*WriteReport, error) {
	if err := CheckTarget(dir, force); err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	c.Name = cmp.Or(c.Name, folderName(dir))
	tmp, err := durable.NewFolder(opWrite, filepath.Clean(dir))
	if err != nil {
		return nil, err
	}
	defer tmp.Close() // removes the replaced dataset, if any
	w := &writer{dir: tmp.Path, content: c}
	if err := w.all(); err != nil {
		return nil, err
	}
	if err := tmp.Commit(); err != nil {
		return nil, err
	}
	return &w.report, nil
}

// writer writes the files into a temporary folder.
type writer struct {
	dir     string
	content Content
	meta    Meta
	report  WriteReport
}

func (w *writer) all() error {
	c := &w.content
	w.meta = Meta{
		Name: c.Name, Source: c.Source, Licence: c.Licence, Synthetic: c.Synthetic,
		Vertices: c.Vertices, FeatureDim: c.Features.Dim, Normalized: c.Normalize,
		Task: c.Task, Classes: c.Classes, ClassNames: c.ClassNames, TargetScaling: c.TargetScaling,
		Relations: c.Relations, Table: c.Table, EdgeImport: c.EdgeImport, Files: map[string]FileInfo{},
	}
	for _, step := range []func() error{w.edges, w.features, w.labels, w.links, w.ids} {
		if err := step(); err != nil {
			return err
		}
	}
	w.report.Vertices, w.report.Edges, w.report.Directed = w.meta.Vertices, w.meta.Edges, w.meta.Directed
	w.report.Weighted, w.report.EdgeDim, w.report.Links = w.meta.Weighted, w.meta.EdgeDim, w.meta.Links
	w.report.Isolated, w.report.Train, w.report.Val, w.report.Test = w.meta.Isolated, w.meta.Train, w.meta.Val, w.meta.Test
	return w.writeMeta()
}

// file writes one array file and adds it to meta.json.
func (w *writer) file(name, kind string, fill func(*arrayfile.Writer) error) error {
	path := filepath.Join(w.dir, name)
	f, err := arrayfile.Create(path, kind)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := fill(f); err != nil {
		return err
	}
	if err := f.Commit(); err != nil {
		return err
	}
	length, crc := f.Sum()
	w.meta.Files[name] = FileInfo{Bytes: length, CRC32C: crc}
	return nil
}

// putFile writes a file with one array.
func putFile[T mapped.Elem](w *writer, name, kind, array string, values []T) error {
	return w.file(name, kind, func(f *arrayfile.Writer) error { return arrayfile.Put(f, array, values) })
}

func (w *writer) edges() error {
	scratch := mapped.NewArena()
	defer scratch.Free()
	e, err := newWindows(&w.content, scratch)
	if err != nil {
		return err
	}
	w.meta.Weighted, w.meta.EdgeDim = e.weights != nil, e.dim
	if err := w.edgeFiles(e); err != nil {
		return err
	}
	offsets := e.in.offsets
	for v := range len(offsets) - 1 {
		w.meta.MaxInDegree = max(w.meta.MaxInDegree, offsets[v+1]-offsets[v])
	}
	w.meta.Directed, w.meta.Isolated, w.meta.Edges = e.directed(), e.isolated, offsets[len(offsets)-1]
	if w.meta.SelfLoops = w.content.SelfLoops; !w.content.LoopsUnused {
		w.meta.SelfLoops += e.selfLoops
	}
	if w.meta.Repeated = w.content.Repeated; !w.content.Symmetrise {
		w.meta.Repeated += e.counted - w.meta.Edges
	}
	w.report.Uneven = e.uneven && !e.oneWay
	w.report.Duplicates, w.report.SelfLoops = e.counted-w.meta.Edges, e.selfLoops
	return nil
}

// edgeFiles writes edges, their weights, features and relations in one pass, so that each window is built
// once.
func (w *writer) edgeFiles(e *windows) error {
	var of edgeFiles
	write := func() error {
		return w.file(csrFile, csrKind, func(f *arrayfile.Writer) error {
			err := e.write(f, "offsets", "cols", e.in, of)
			if err == nil && e.directed() {
				err = e.write(f, "out_offsets", "out_cols", e.out, edgeFiles{})
			}
			return err
		})
	}
	for _, also := range []struct {
		there      bool
		name, kind string
		to         **arrayfile.Writer
	}{{e.weights != nil, weightFile, weightKind, &of.weights}, {e.dim > 0, edgeFile, edgeKind, &of.features},
		{e.related != nil, relationFile, relationKind, &of.relations}} {
		if inner := write; also.there {
			write = func() error {
				return w.file(also.name, also.kind, func(f *arrayfile.Writer) error {
					*also.to = f
					return inner()
				})
			}
		}
	}
	return write()
}

func (w *writer) labels() error {
	c := &w.content
	w.meta.ClassCounts = make([]int64, c.Classes)
	splits := [SplitTest + 1]int64{}
	for v, l := range c.Labels {
		splits[c.Split[v]]++
		if l == Unlabelled {
			w.report.Unlabelled++
			continue
		}
		if c.Targets == nil {
			w.meta.ClassCounts[l]++
		}
		if r := c.Relations; r != nil {
			r.Kinds[r.KindOf(int64(v))].Labels++
		}
	}
	w.meta.Train, w.meta.Val, w.meta.Test = splits[SplitTrain], splits[SplitVal], splits[SplitTest]
	if err := putFile(w, labelFile, labelKind, "labels", c.Labels); err != nil {
		return err
	}
	if err := w.targets(); err != nil {
		return err
	}
	return putFile(w, splitFile, splitKind, "split", c.Split)
}

// targets writes the targets of tasks that have targets.
func (w *writer) targets() error {
	c := &w.content
	if c.Targets == nil {
		return nil
	}
	for i, y := range c.Targets {
		if c.Task == Regression && y == y || y == 1 {
			w.meta.ClassCounts[i%c.Classes]++
		}
	}
	return putFile(w, targetFile, targetKind, "targets", c.Targets)
}

func (w *writer) ids() error {
	ids := w.content.IDs
	if ids == nil {
		return nil
	}
	return w.file(idFile, idKind, func(f *arrayfile.Writer) error {
		if ids.Ints != nil {
			return arrayfile.Put(f, "ints", ids.Ints)
		}
		arrayfile.Put(f, "offsets", ids.Offsets)
		return arrayfile.Put(f, "text", ids.Text)
	})
}

// writeMeta must be called last: a folder without meta.json is not a dataset.
func (w *writer) writeMeta() error {
	var err error
	w.meta.Format = w.meta.version()
	if w.meta.Checksum, err = w.meta.sum(); err != nil {
		return fault.System(opWrite, w.dir, err)
	}
	text, err := json.MarshalIndent(w.meta, "", "  ")
	if err != nil {
		return fault.System(opWrite, w.dir, err)
	}
	return durable.WriteFile(opWrite, filepath.Join(w.dir, metaFile), append(text, '\n'), durable.Perm)
}

// folderName returns the default name of a dataset in the folder dir.
func folderName(dir string) string {
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	return strings.ToLower(filepath.Base(dir))
}
