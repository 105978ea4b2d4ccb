package importers

import (
	"math"
	"slices"

	"siafu/graph"
	"siafu/internal/fault"
)

// maxVertices is what uint32 vertex ids can number.
const maxVertices = 1 << 32

// checkVertices refuses numbers of vertices that ids cannot express.
func checkVertices(op, path string, n int64) error {
	if n < 0 || n > maxVertices {
		return fault.New(fault.Data, op, path, "%d vertices, expected 0 to %d", n, int64(maxVertices))
	}
	return nil
}

// checkPairs compares every id of src,dst pairs with the number of vertices.
func checkPairs(op, path string, pairs []uint32, n int64) error {
	for i, v := range pairs {
		if int64(v) >= n {
			return badEdge(op, path, int64(i/2), i%2, int64(v), n)
		}
	}
	return nil
}

// badEdge returns the fault of an edge whose source (end 0) or destination (end 1)
// is no vertex.
func badEdge(op, path string, edge int64, end int, v, n int64) error {
	return fault.New(fault.Data, op, path, "edge %d: %s %d is outside the vertices 0..%d", edge, [2]string{"source", "destination"}[end], v, n-1)
}

// checkFinite refuses features [rows x dim] that are NaN or infinite.
func checkFinite(op, path string, x []float32, dim int) error {
	// The exponent's bits are all ones in NaN and the infinities only.
	const exponent = 0x7f800000
	for i, v := range x {
		if math.Float32bits(v)&exponent == exponent {
			return fault.New(fault.Data, op, path, "feature %d of vertex %d is %v", i%dim, i/dim, v).
				Then("replace it with a finite number")
		}
	}
	return nil
}

// mostLabel returns the largest label that n vertices may have: the last of the
// classes where they are known, else the last that a dataset can number.
func mostLabel(classes, n int) int64 {
	if classes <= 0 {
		classes = graph.MaxClasses(int64(n))
	}
	return int64(classes) - 1
}

// checkLabels converts labels to what a dataset stores. Negative ones other
// than -1 and those beyond mostLabel are refused.
func checkLabels(op, path string, labels []int64) ([]int32, error) {
	most := mostLabel(0, len(labels))
	out := make([]int32, len(labels))
	for v, l := range labels {
		if l < int64(graph.Unlabelled) || l > most {
			return nil, badLabel(op, path, v, l, most)
		}
		out[v] = int32(l)
	}
	return out, nil
}

// unlabelled returns the labels of n vertices that have none.
func unlabelled(n int64) []int32 { return slices.Repeat([]int32{graph.Unlabelled}, int(n)) }

func badLabel(op, path string, v int, l, most int64) error {
	return fault.New(fault.Data, op, path, "label of vertex %d is %d, expected -1 (none) to %d", v, l, most)
}

// checkContent is what must hold of every dataset, whatever it came from.
func checkContent(op, path string, c *graph.Content) error {
	n := int(c.Vertices)
	if len(c.Labels) != n || len(c.Split) != n || c.Features.Rows != n {
		return fault.New(fault.Data, op, path, "%d vertices, but %d labels, %d entries of the split, %d rows of features",
			n, len(c.Labels), len(c.Split), c.Features.Rows)
	}
	for v, s := range c.Split {
		if s != graph.SplitNone && c.Labels[v] == graph.Unlabelled {
			return fault.New(fault.Data, op, path, "vertex %d is in the %s set and has no label", v, splitNames[s]).
				Then("take it out of the split")
		}
	}
	return nil
}

// splitNames names the values of a split.
var splitNames = [4]string{"no", "training", "validation", "test"}

// splitter fills a split and refuses a vertex that is named twice.
type splitter struct {
	op    string
	split []uint8
}

func newSplitter(op string, n int) *splitter { return &splitter{op: op, split: make([]uint8, n)} }

// mark puts vertex v into a set. path and at say where that was read.
func (s *splitter) mark(path string, at int, v int64, set uint8) error {
	if v < 0 || v >= int64(len(s.split)) {
		return fault.New(fault.Data, s.op, path, "entry %d: %d is outside the vertices 0..%d", at, v, len(s.split)-1)
	}
	if had := s.split[v]; had != graph.SplitNone {
		return fault.New(fault.Data, s.op, path, "entry %d: vertex %d of the %s set is in the %s set already", at, v, splitNames[set], splitNames[had]).
			Then("each vertex may be in one set, once")
	}
	s.split[v] = set
	return nil
}

// markAll marks a list of vertices.
func (s *splitter) markAll(path string, vs []int64, set uint8) error {
	for i, v := range vs {
		if err := s.mark(path, i, v, set); err != nil {
			return err
		}
	}
	return nil
}

// checkSplit compares the values of a split file with those that exist.
func checkSplit(op, path string, split []uint8) error {
	for v, s := range split {
		if s > graph.SplitTest {
			return badSplit(op, path, v, int64(s))
		}
	}
	return nil
}

func badSplit(op, path string, v int, s int64) error {
	return fault.New(fault.Data, op, path, "split of vertex %d is %d, expected 0 (none), 1 (training), 2 (validation), 3 (test)", v, s)
}
