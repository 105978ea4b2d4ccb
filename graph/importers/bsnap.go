package importers

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"siafu/graph"
	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/mapped"
)

var bsnapFormat = importer{
	entry: entry{Name: "bsnap", Help: "folder of Dorylus"},
	read:  bsnap, recognises: isBsnap, after: keepParts,
	onlySplit: "the files have no splits; --seed selects a random split",
}

// Dorylus (Thorpe et al. 2021) stores a graph in little-endian files:
//
//	graph.bsnap     int32 4 (bytes of a vertex id), uint32 vertices,
//	                uint64 edges, then uint32 source and destination of each
//	features.bsnap  uint32 columns, then float32 rows
//	labels.bsnap    uint32 classes, then uint32 labels
//	*.parts         text: the partition of each vertex, one a line
//
// Source: inputs/graphToBinary.cpp, featuresToBinary.cpp and labelsToBinary.cpp of its
// repository. After its partitioner ran, the graph is parts_N/graph.bsnap.edges, often a link.
const bsnapHeader = 16

func isBsnap(src string) bool { return bsnapGraph(src) != "" }

// bsnapGraph returns the path of the edges, "" if there is none.
func bsnapGraph(src string) string {
	for _, name := range []string{"graph.bsnap", "graph.bsnap.edges"} {
		if path := filepath.Join(src, name); exists(path) {
			return path
		}
	}
	if found, _ := filepath.Glob(filepath.Join(escapeGlob(src), "parts_*", "graph.bsnap.edges")); len(found) > 0 {
		return found[0]
	}
	return ""
}

func bsnapParts(src string) []string {
	var paths []string
	for _, pattern := range []string{"*.parts", "parts_*/*.parts"} {
		found, _ := filepath.Glob(filepath.Join(escapeGlob(src), pattern))
		paths = append(paths, found...)
	}
	return paths
}

func bsnap(k *resources, o Options) *graph.Content {
	read := func(at input) (input, []byte) { return at, k.file(at) }
	labels, classes := bsnapLabels(read(k.in("labels.bsnap")))
	c := &graph.Content{Vertices: int64(len(labels)), Labels: labels, Classes: classes}
	at, features := read(k.in("features.bsnap"))
	c.Features = bsnapFeatures(at, features, c.Vertices)
	if at.path = bsnapGraph(o.Src); at.path == "" {
		check(fault.New(fault.Missing, k.op, o.Src, "it has neither graph.bsnap nor parts_*/graph.bsnap.edges").Then("check the path"))
	}
	pairs, twice := bsnapEdges(at, k.file(at), c.Vertices)
	if twice && !o.Symmetrise {
		o.Log("path=%s the header counts each edge twice, the file lists it once: stored in both directions", at.path)
	}
	c.Edges, c.Symmetrise = pairs, twice
	c.Split = o.draw(c.Labels, percentages{66, 10}) // Dorylus takes the same percentages by position
	bsnapPartition(k, o, c.Vertices)
	return c
}

// Remedies for damaged files.
const (
	fetchTruncated = "fetch the file again, it is truncated"
	fetchDamaged   = "fetch the folder again: the file is truncated or belongs to another labels.bsnap"
)

func bsnapLabels(at input, b []byte) (labels []int32, classes int) {
	at.require(len(b) >= 4 && len(b)%4 == 0, fetchTruncated, "%d bytes are not a header followed by 4-byte labels", len(b))
	kinds, most := binary.LittleEndian.Uint32(b), graph.MaxClasses(int64(len(b)/4-1))
	at.require(kinds > 0 && int64(kinds) <= int64(most), "", "byte 0: %d kinds of label, expected 1 to %d", kinds, most)
	labels = make([]int32, len(b)/4-1)
	for v := range labels {
		l := binary.LittleEndian.Uint32(b[4+4*v:])
		if l >= kinds {
			check(at.bad("label of vertex %d is %d, expected 0 to %d", v, l, kinds-1))
		}
		labels[v] = int32(l)
	}
	return labels, int(kinds)
}

// bsnapFeatures parses features.bsnap in place.
func bsnapFeatures(at input, b []byte, n int64) graph.Features {
	at.require(len(b) >= 4, fetchTruncated, "%d bytes are too few for a header", len(b))
	dim, size := int64(binary.LittleEndian.Uint32(b)), int64(len(b)-4)
	// Division, because n·dim·4 may overflow.
	fits := size%4 == 0 && (dim == 0 && size == 0 || dim > 0 && size/4/dim == n && size/4%dim == 0)
	at.require(fits, fetchDamaged, "%d bytes after the header are not %d rows of %d 4-byte numbers", size, n, dim)
	f := graph.Features{Rows: int(n), Dim: int(dim), Dense: mapped.Cast[float32](b[4:])}
	checkFinite(at, f.Dense, max(f.Dim, 1))
	return f
}

// bsnapEdges parses graph.bsnap in place. twice reports that the header counts each edge twice:
// the converter does so for an undirected graph, but writes each edge once.
func bsnapEdges(at input, b []byte, n int64) (pairs graph.EdgePairs, twice bool) {
	at.require(len(b) >= bsnapHeader, fetchTruncated, "%d bytes are too few for a header of %d", len(b), bsnapHeader)
	size, vertices := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	at.require(size == 4, "convert the graph with its header, graphtobinary --header=1", "byte 0: vertex ids of %d bytes, expected 4", size)
	at.require(int64(vertices) <= n, "", "byte 4: %d vertices, but labels.bsnap holds %d", vertices, n)
	claimed, held := binary.LittleEndian.Uint64(b[8:]), uint64(len(b)-bsnapHeader)/8
	at.require(len(b)%8 == 0 && (claimed == held || claimed == 2*held), fetchTruncated,
		"byte 8: %d edges, but %d bytes follow the header, 8 for each", claimed, len(b)-bsnapHeader)
	pairs = mapped.Cast[uint32](b[bsnapHeader:])
	checkPairs(at, pairs, n)
	return pairs, claimed != held
}

// bsnapPartition checks the one partition file, before anything is written.
func bsnapPartition(k *resources, o Options, n int64) {
	switch paths := bsnapParts(o.Src); len(paths) {
	case 0:
	case 1:
		readParts(input{k.op, paths[0]}, n)
		o.Log("partition=%s copied; use it with siafu partition --method file:%s", paths[0], filepath.Join(o.Dst, graph.PartsFile))
	default:
		o.Log("partitions=%q several files, none copied; use one with siafu partition --method file:PATH", paths)
	}
}

// readParts returns the lines of a partition file that begin with a digit, as Dorylus reads them.
// It requires n such lines, or any number if n is negative.
func readParts(at input, n int64) (out []byte) {
	lines, line := int64(0), 0
	for text := range strings.Lines(string(at.read())) {
		line++
		if text = strings.TrimSpace(text); text == "" || text[0] < '0' || text[0] > '9' {
			continue
		}
		v, ok := parseInt([]byte(text))
		at.require(ok && v <= math.MaxInt16, "", "line %d: %.40q is not a partition number", line, text)
		out = fmt.Appendln(out, v)
		lines++
	}
	at.require(n < 0 || lines == n, "", "%d lines for %d vertices", lines, n)
	return out
}

// keepParts copies the partition file to the finished dataset.
func keepParts(o Options, _ *graph.WriteReport) (err error) {
	defer catch(&err)
	paths := bsnapParts(o.Src)
	if len(paths) != 1 {
		return nil
	}
	b := readParts(input{"import bsnap", paths[0]}, -1)
	return durable.WriteFile("import", filepath.Join(o.Dst, graph.PartsFile), b, durable.Perm)
}
