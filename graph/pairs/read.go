package pairs

import (
	"fmt"
	"path/filepath"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
)

// Split is the content of a file for one split of a graph's edges. Absent lists are empty.
// Relations is nil unless both the file and the graph have relations.
type Split struct {
	graph.Held
	// Ranked is the number of candidates per edge in Each.
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
// Text of a relational graph also has a column called relation. Without a first line it has
// three columns: source, relation and destination, also between tabs in a .txt file.
//
// Numbers in arrays are ids as well. op is the operation of faults.
func Read(op, path string, names *Names) (*Split, error) { return readPart(op, path, "", names) }

// readPart is Read for a file with several splits. If a .pt file contains a dictionary per split,
// as in ogbl-vessel, readPart reads the dictionary called part ("train", "valid" or "test").
func readPart(op, path, part string, names *Names) (*Split, error) {
	s, err := new(Split), error(nil)
	r := reader{op: op, path: path, part: part, names: names}
	if kindOf(path) == "text" {
		err = textPairs(r, s)
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

// readEach reads candidate vertices for n edges: an array [n x ranked] in a .npy file, or text
// with one line per edge and no header line.
func readEach(op, path string, names *Names, n int) (each []uint32, ranked int, err error) {
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

// kindOf returns the reader for a file name: npy, npz, torch or text.
func kindOf(path string) string {
	switch kind := strings.ToLower(filepath.Ext(path)); kind {
	case ".npy", ".npz":
		return kind[1:]
	case ".pt", ".pth":
		return "torch"
	}
	return "text"
}

// reader contains a file's path and the data needed to read it.
type reader struct {
	op, path string
	part     string // name of the split to read; "" for a file with one split
	names    *Names
}

func (r reader) bad(format string, args ...any) *fault.Error {
	return fault.New(fault.Data, r.op, r.path, format, args...)
}

// unknown returns the fault that no vertex has the id at a place of the file.
func (r reader) unknown(place string, id any) error {
	err := r.bad("%s names %q, but no vertex has that id", place, id)
	if names := r.names.withKind(fmt.Sprint(id)); len(names) > 0 {
		return err.Then("write KIND:ID: %s", strings.Join(names, " or "))
	}
	return err.
		Then("give ids of the dataset; siafu info prints its number of vertices")
}
