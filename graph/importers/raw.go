package importers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/mapped"
)

var rawFormat = importer{
	entry: entry{Name: "raw", Help: "flat binary arrays, as a folder or `.tar.zst`"},
	read:  raw, recognises: isRaw,
}

const opRaw = "import raw"

// rawMeta is meta.json of the raw layout; other keys are ignored.
type rawMeta struct {
	Nodes      *int64 `json:"nodes"`
	Edges      *int64 `json:"edges"`
	Undirected bool   `json:"undirected"`
	FeatureDim *int64 `json:"feature_dim"`
	Classes    int    `json:"classes"`
	Multilabel bool   `json:"multilabel"`
	Licence    string `json:"license"`
	Synthetic  bool   `json:"synthetic"`
	SourceRepo string `json:"source_repo"`
}

func isRaw(src string) bool {
	return strings.HasSuffix(src, ".tar.zst") || exists(filepath.Join(src, "graph.edges.bin"))
}

// raw reads the layout of flat little-endian arrays, from a folder or from an
// archive of one.
func raw(k *keeper, o Options) (*graph.Content, error) {
	file, row, err := rawSplitName(o)
	if err != nil {
		return nil, err
	}
	dir := o.Src
	if info, err := os.Stat(dir); err != nil {
		return nil, fault.System(opRaw, dir, err)
	} else if !info.IsDir() {
		wanted := []string{"meta.json", "graph.edges.bin", "features.bin", "labels.bin", file}
		if dir, err = unpack(k, opRaw, o, wanted); err != nil {
			return nil, err
		}
	}
	m, err := readRawMeta(filepath.Join(dir, "meta.json"))
	if err != nil {
		return nil, err
	}
	c := &graph.Content{
		Source: "raw " + nameOf(o.Src), Licence: m.Licence, Synthetic: m.Synthetic,
		Vertices: *m.Nodes, Classes: m.Classes,
	}
	if m.SourceRepo != "" {
		c.Source = "raw, from " + m.SourceRepo
	}
	for _, read := range []func() error{
		func() error { return rawEdges(k, dir, m, o, c) },
		func() error { return rawFeatures(k, dir, m, c) },
		func() error { return rawLabels(k, dir, m, c) },
		func() error { return rawSplit(k, filepath.Join(dir, file), row, c) },
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// rawSplitName parses --split: a file of the folder and, after a colon, the row of a file with
// several splits (-1: it has one).
func rawSplitName(o Options) (file string, row int64, err error) {
	if o.Split == "" {
		return "split.bin", -1, nil
	}
	file, number, many := strings.Cut(o.Split, ":")
	row = -1
	if many {
		if row, err = strconv.ParseInt(number, 10, 32); err != nil || row < 0 {
			return "", 0, fault.New(fault.Usage, opRaw, o.Src, "split %q: %q is not a row number", o.Split, number).
				Then("write FILE or FILE:ROW, such as splits10.bin:3")
		}
	}
	if file == "" || file != filepath.Base(file) {
		return "", 0, fault.New(fault.Usage, opRaw, o.Src, "split %q: %q is not a file of the folder", o.Split, file).
			Then("write FILE or FILE:ROW, such as splits10.bin:3")
	}
	return file, row, nil
}

func readRawMeta(path string) (*rawMeta, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.System(opRaw, path, err)
	}
	var m rawMeta
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, &fault.Error{Op: opRaw, Kind: fault.Data, Path: path, Err: err}
	}
	bad := func(format string, args ...any) (*rawMeta, error) {
		return nil, fault.New(fault.Data, opRaw, path, format, args...)
	}
	switch {
	case m.Nodes == nil || m.Edges == nil || m.FeatureDim == nil:
		return bad("nodes, edges or feature_dim is missing")
	case *m.Edges < 0 || *m.Edges > 1<<48:
		return bad("edges is %d", *m.Edges)
	case *m.FeatureDim < 0 || *m.FeatureDim > 1<<28:
		return bad("feature_dim is %d", *m.FeatureDim)
	case m.Classes < 0 || m.Classes > graph.MaxClasses(*m.Nodes):
		return bad("classes is %d, expected 0 to %d", m.Classes, graph.MaxClasses(*m.Nodes))
	case m.Multilabel:
		return nil, multiLabel(opRaw, path, "multilabel is true")
	}
	return &m, checkVertices(opRaw, path, *m.Nodes)
}

// multiLabel returns the fault of a dataset whose vertices have several labels.
func multiLabel(op, path, format string, args ...any) error {
	return fault.New(fault.Data, op, path, format, args...).
		Then("import multi-label data as npz with y [vertices x labels], or as csv with --label A,B,C")
}

// rawArray maps one array of the layout, whose length meta.json implies.
func rawArray[T mapped.Elem](k *keeper, path string, n, elemBytes int64, why string) ([]T, error) {
	b, err := k.file(path)
	if err != nil {
		return nil, err
	}
	if int64(len(b)) != n*elemBytes {
		return nil, fault.New(fault.Data, opRaw, path, "%d bytes, expected %d: %s in meta.json, %d bytes each", len(b), n*elemBytes, why, elemBytes).
			Then("fetch the folder again: the file is truncated or belongs to another meta.json")
	}
	return mapped.Cast[T](b), nil
}

func rawEdges(k *keeper, dir string, m *rawMeta, o Options, c *graph.Content) error {
	path := filepath.Join(dir, "graph.edges.bin")
	pairs, err := rawArray[uint32](k, path, *m.Edges*2, 4, "two ids for each of the edges")
	if err != nil {
		return err
	}
	if err := checkPairs(opRaw, path, pairs, c.Vertices); err != nil {
		return err
	}
	if m.Undirected && !o.Symmetrise {
		if err := checkSymmetric(opRaw, path, pairs); err != nil {
			return err
		}
	}
	c.Edges = graph.EdgePairs(pairs)
	return nil
}

func rawFeatures(k *keeper, dir string, m *rawMeta, c *graph.Content) error {
	dim := int(*m.FeatureDim)
	c.Features = graph.Features{Rows: int(c.Vertices), Dim: dim}
	if dim == 0 {
		return nil
	}
	path := filepath.Join(dir, "features.bin")
	x, err := rawArray[float32](k, path, c.Vertices*int64(dim), 4, "nodes x feature_dim")
	if err != nil {
		return err
	}
	c.Features.Dense = x
	return checkFinite(opRaw, path, x, dim)
}

func rawLabels(k *keeper, dir string, m *rawMeta, c *graph.Content) error {
	path := filepath.Join(dir, "labels.bin")
	if !exists(path) && !exists(filepath.Join(dir, "split.bin")) && c.Features.Dim > 0 { // whose bytes prove the vertices
		c.Labels = unlabelled(c.Vertices)
		return nil
	}
	labels, err := rawArray[int32](k, path, c.Vertices, 4, "nodes")
	if err != nil {
		return err
	}
	most := mostLabel(m.Classes, len(labels))
	for v, l := range labels {
		if int64(l) < int64(graph.Unlabelled) || int64(l) > most {
			return badLabel(opRaw, path, v, int64(l), most)
		}
	}
	c.Labels = labels
	return nil
}

// rawSplit reads a split file, or one row of a file of several splits.
func rawSplit(k *keeper, path string, row int64, c *graph.Content) error {
	if row < 0 && !exists(path) && !exists(filepath.Join(filepath.Dir(path), "labels.bin")) {
		c.Split = make([]uint8, c.Vertices)
		return nil
	}
	b, err := k.file(path)
	if err != nil {
		return err
	}
	n := c.Vertices
	size := int64(len(b))
	switch {
	case row < 0 && size != n:
		return fault.New(fault.Data, opRaw, path, "%d bytes, expected %d: one for each of the nodes in meta.json", size, n).
			Then("for a file of several splits choose a row, such as --split %s:0", filepath.Base(path))
	case row >= 0 && (n == 0 || size%n != 0):
		return fault.New(fault.Data, opRaw, path, "%d bytes are not a whole number of rows of %d vertices", size, n)
	case row >= 0 && row >= size/n:
		return fault.New(fault.Usage, opRaw, path, "there is no row %d, the file has %d splits", row, size/n).
			Then("choose a row from 0 to %d", size/n-1)
	case row >= 0:
		b = b[row*n : (row+1)*n]
	}
	c.Split = b
	return checkSplit(opRaw, path, b)
}

// checkSymmetric refuses edges declared undirected if one of them has no reverse.
//
// Design note: sorting the edges would also work, but needs a copy. A sum of hashes over all
// edges equals the sum over all reversed ones if the two multisets are equal. Only a graph
// that fails is sorted, to name the edge.
func checkSymmetric(op, path string, pairs []uint32) error {
	var forward, backward uint64
	for i := 0; i < len(pairs); i += 2 {
		forward += mix(edgeKey(pairs[i], pairs[i+1]))
		backward += mix(edgeKey(pairs[i+1], pairs[i]))
	}
	if forward == backward {
		return nil
	}
	keys := make([]uint64, len(pairs)/2)
	for i := range keys {
		keys[i] = edgeKey(pairs[2*i], pairs[2*i+1])
	}
	slices.Sort(keys)
	for i := 0; i < len(pairs); i += 2 {
		if _, ok := slices.BinarySearch(keys, edgeKey(pairs[i+1], pairs[i])); !ok {
			return fault.New(fault.Data, op, path, "edge %d: %d→%d has no reverse, but meta.json says undirected", i/2, pairs[i], pairs[i+1]).
				Then("import with --symmetrise")
		}
	}
	return nil // only duplicates in one direction, which are dropped anyway
}

func edgeKey(src, dst uint32) uint64 { return uint64(src)<<32 | uint64(dst) }

// mix applies the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
