package importers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"siafu/graph"
	"siafu/internal/elementary"
	"siafu/internal/fault"
	"siafu/internal/mapped"
)

var rawFormat = importer{
	entry: entry{Name: "raw", Help: "flat binary arrays, as a folder or `.tar.zst`"},
	read:  raw, recognises: isRaw,
}

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

type rawFolder struct {
	resources *resources
	input     // the folder
	rawMeta
}

// raw reads the layout of flat little-endian arrays, from a folder or from an archive of one.
func raw(k *resources, o Options) *graph.Content {
	file, row := rawSplitName(k.input, o)
	r := &rawFolder{resources: k, input: k.input}
	info, err := os.Stat(o.Src)
	k.system(err)
	if !info.IsDir() {
		defer namesMembers(k.input, &r.path)
		r.path = unpack(k, k.input, o.Dst, []string{"meta.json", "graph.edges.bin", "features.bin", "labels.bin", file})
	}
	r.readMeta()
	c := &graph.Content{
		Licence: r.Licence, Synthetic: r.Synthetic,
		Vertices: *r.Nodes, Classes: r.Classes,
	}
	if r.SourceRepo != "" {
		c.Source = "raw, from " + r.SourceRepo
	}
	c.Edges = r.edges(o)
	c.Features = r.features()
	noLabels, noSplit := !r.in("labels.bin").exists(), !r.in("split.bin").exists()
	if noLabels && noSplit && c.Features.Dim > 0 { // features.bin has Nodes rows, so Nodes is not a mistake
		c.Labels = unlabelled(c.Vertices)
	} else {
		at, labels := rawArray[int32](r, "labels.bin", c.Vertices, 4, "nodes")
		checkRange(at, labels, r.Classes)
		c.Labels = labels
	}
	if row < 0 && noLabels && !r.in(file).exists() {
		c.Split = make([]uint8, c.Vertices)
		return c
	}
	c.Split = r.split(file, row)
	return c
}

// namesMembers replaces the temporary folder of unpacked files in a fault by the archive. It must be
// deferred. An archive without a file is invalid.
func namesMembers(archive input, folder *string) {
	r := recover()
	if r == nil {
		return
	}
	if f, ok := r.(failure); ok {
		if e := (*fault.Error)(nil); errors.As(f.err, &e) {
			if name, err := filepath.Rel(*folder, e.Path); err == nil && filepath.IsLocal(name) && *folder != archive.path {
				if e.Kind == fault.Missing {
					check(archive.bad("it has no file %s", name).Then("pack the files of a dataset, or name the format with --from"))
				}
				e.Path = archive.element(name).path
			}
		}
	}
	panic(r)
}

// rawSplitName parses --split: a file of the folder and, after a colon, the row of a file with
// several splits (-1: it has one).
func rawSplitName(at input, o Options) (file string, row int64) {
	if o.Split == "" {
		return "split.bin", -1
	}
	const remedy = "write FILE or FILE:ROW, such as splits10.bin:3"
	file, number, many := strings.Cut(o.Split, ":")
	row = -1
	if many {
		var err error
		if row, err = strconv.ParseInt(number, 10, 32); err != nil || row < 0 {
			at.refuse(remedy, "split %q: %q is not a row number", o.Split, number)
		}
	}
	if file == "" || file != filepath.Base(file) {
		at.refuse(remedy, "split %q: %q is not a file of the folder", o.Split, file)
	}
	return file, row
}

func (r *rawFolder) readMeta() {
	at, m := r.in("meta.json"), &r.rawMeta
	at.json(m)
	at.require(m.Nodes != nil && m.Edges != nil && m.FeatureDim != nil, "", "nodes, edges or feature_dim is missing")
	at.require(*m.Edges >= 0 && *m.Edges <= 1<<48, "", "edges is %d", *m.Edges)
	at.require(*m.FeatureDim >= 0 && *m.FeatureDim <= 1<<28, "", "feature_dim is %d", *m.FeatureDim)
	most := graph.MaxClasses(*m.Nodes)
	at.require(m.Classes >= 0 && m.Classes <= most, "", "classes is %d, expected 0 to %d", m.Classes, most)
	at.require(!m.Multilabel, severalLabels, "multilabel is true")
	checkVertices(at, *m.Nodes)
}

// rawArray maps one array of the layout. The array must have n elements of elemBytes bytes, where n
// comes from meta.json. counted describes, for messages, the numbers of meta.json that n is.
func rawArray[T mapped.Elem](r *rawFolder, file string, n, elemBytes int64, counted string) (input, []T) {
	at := r.in(file)
	b := r.resources.file(at)
	at.require(int64(len(b)) == n*elemBytes, "fetch the folder again: the file is truncated or belongs to another meta.json",
		"%d bytes, expected %d: %s in meta.json, %d bytes each", len(b), n*elemBytes, counted, elemBytes)
	return at, mapped.Cast[T](b)
}

func (r *rawFolder) edges(o Options) graph.EdgePairs {
	at, pairs := rawArray[uint32](r, "graph.edges.bin", *r.Edges*2, 4, "two ids for each of the edges")
	checkPairs(at, pairs, *r.Nodes)
	if r.Undirected && !o.Symmetrise {
		checkSymmetric(at, pairs)
	}
	return pairs
}

func (r *rawFolder) features() graph.Features {
	f := graph.Features{Rows: int(*r.Nodes), Dim: int(*r.FeatureDim)}
	if f.Dim > 0 {
		var at input
		at, f.Dense = rawArray[float32](r, "features.bin", *r.Nodes*int64(f.Dim), 4, "nodes x feature_dim")
		checkFinite(at, f.Dense, f.Dim)
	}
	return f
}

// split reads a split file, or one row of a file of several splits.
func (r *rawFolder) split(file string, row int64) []uint8 {
	at, n := r.in(file), *r.Nodes
	b := r.resources.file(at)
	size := int64(len(b))
	at.require(row >= 0 || size == n, "for a file of several splits choose a row, such as --split "+filepath.Base(file)+":0",
		"%d bytes, expected %d: one for each of the nodes in meta.json", size, n)
	if row >= 0 {
		at.require(n > 0 && size%n == 0, "", "%d bytes are not a whole number of rows of %d vertices", size, n)
		if row >= size/n {
			at.refuse(fmt.Sprintf("choose a row from 0 to %d", size/n-1), "there is no row %d, the file has %d splits", row, size/n)
		}
		b = b[row*n : (row+1)*n]
	}
	checkSplit(at, b)
	return b
}

// checkSymmetric refuses edges declared undirected if one of them has no reverse.
//
// Design note: sorting the edges would also work, but needs a copy. A sum of hashes over all
// edges equals the sum over all reversed ones if the two multisets are equal. Only a graph
// that fails is sorted, to name the edge.
func checkSymmetric(at input, pairs []uint32) {
	var forward, backward uint64
	for i := 0; i < len(pairs); i += 2 {
		forward += elementary.Mix(edgeKey(pairs[i], pairs[i+1]))
		backward += elementary.Mix(edgeKey(pairs[i+1], pairs[i]))
	}
	if forward == backward {
		return
	}
	keys := make([]uint64, len(pairs)/2)
	for i := range keys {
		keys[i] = edgeKey(pairs[2*i], pairs[2*i+1])
	}
	slices.Sort(keys)
	for i := 0; i < len(pairs); i += 2 {
		if _, ok := slices.BinarySearch(keys, edgeKey(pairs[i+1], pairs[i])); !ok {
			at.require(false, "import with --symmetrise",
				"edge %d: %d→%d has no reverse, but meta.json says undirected", i/2, pairs[i], pairs[i+1])
		}
	}
	// Only duplicates in one direction differ, which are dropped anyway.
}

func edgeKey(src, dst uint32) uint64 { return uint64(src)<<32 | uint64(dst) }
