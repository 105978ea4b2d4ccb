package pairfile

import (
	"path/filepath"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
)

// Split is the content of a file for one split of a graph's edges. Absent lists are empty.
type Split struct {
	Edges graph.Pairs
	Not   graph.Pairs // a list that all edges share
	Each  []uint32    // [Edges x Ranked], the edge's own, in place of its destination
	// Ranked is how many vertices an edge has in Each.
	Ranked int
}

// Read reads a file of pairs:
//
//	.npy         pairs as [n x 2] or [2 x n]
//	.npz, .pt    arrays by the names of the Open Graph Benchmark's split files: edge [n x 2]
//	             and edge_neg [m x 2], or source_node [n], target_node [n] and
//	             target_node_neg [n x ranked]
//	others       text: a first line with columns called src and dst, then a pair a line,
//	             between commas or, of a .tsv file, tabs
//
// Numbers in arrays are ids as well. op is the operation of faults.
func Read(op, path string, names *Names) (*Split, error) { return ReadPart(op, path, "", names) }

// ReadPart is Read of a file that may have several splits: of a .pt file with a dictionary
// for each, as ogbl-vessel's, it reads the one called part ("train", "valid" or "test").
func ReadPart(op, path, part string, names *Names) (*Split, error) {
	s, err := new(Split), error(nil)
	r := reader{op: op, path: path, part: part, names: names}
	if kindOf(path) == "text" {
		s.Edges, err = textPairs(r)
	} else {
		err = readArrays(r, s)
	}
	if err == nil && s.Edges.Len() == 0 {
		err = r.bad("it has no pairs").Then("give at least one pair")
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ReadEach reads N vertices for each of n edges: an array [n x ranked] of a .npy file,
// or text with a line an edge, without a first one that names columns.
func ReadEach(op, path string, names *Names, n int) (each []uint32, ranked int, err error) {
	r := reader{op: op, path: path, names: names}
	if kindOf(path) == "text" {
		each, ranked, err = textRows(r)
	} else {
		each, ranked, err = arrayRows(r)
	}
	if err == nil && len(each) != n*ranked {
		err = r.bad("it has %d rows for %d edges", len(each)/max(ranked, 1), n).Then("give a row for each edge, in their order")
	}
	return each, ranked, err
}

// kindOf is how a file is read.
func kindOf(path string) string {
	switch kind := strings.ToLower(filepath.Ext(path)); kind {
	case ".npy", ".npz":
		return kind[1:]
	case ".pt", ".pth":
		return "torch"
	}
	return "text"
}

// reader is a file with what is needed to read it.
type reader struct {
	op, path string
	part     string // of the splits in one file, "" for a file of one
	names    *Names
}

func (r reader) bad(format string, args ...any) *fault.Error {
	return fault.New(fault.Data, r.op, r.path, format, args...)
}

// unknown returns the fault of an id at a place that no vertex has.
func (r reader) unknown(place string, id any) error {
	return r.bad("%s names %q, but no vertex has that id", place, id).Then("give ids of the dataset; siafu info prints its number of vertices")
}
