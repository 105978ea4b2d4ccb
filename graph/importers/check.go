package importers

import (
	"math"
	"slices"

	"siafu/graph"
	"siafu/internal/fault"
)

// maxVertices is the number of distinct uint32 vertex ids.
const maxVertices = 1 << 32

// checkVertices returns a fault if n exceeds the number of distinct ids.
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

// badEdge returns the fault of an edge whose source (end 0) or destination (end 1) is not a
// vertex.
func badEdge(op, path string, edge int64, end int, v, n int64) error {
	return fault.New(fault.Data, op, path, "edge %d: %s %d is outside the vertices 0..%d", edge, [2]string{"source", "destination"}[end], v, n-1)
}

// checkFinite returns a fault if features [rows x dim] contain NaN or infinity.
func checkFinite(op, path string, x []float32, dim int) error {
	// The exponent bits are all ones only in NaN and infinity.
	const exponent = 0x7f800000
	for i, v := range x {
		if math.Float32bits(v)&exponent == exponent {
			return fault.New(fault.Data, op, path, "feature %d of vertex %d is %v", i%dim, i/dim, v).
				Then("replace it with a finite number")
		}
	}
	return nil
}

// mostLabel returns the largest valid label for n vertices: the last class if the classes are
// known, else the maximum of a dataset.
func mostLabel(classes, n int) int64 {
	if classes <= 0 {
		classes = graph.MaxClasses(int64(n))
	}
	return int64(classes) - 1
}

// checkLabels converts labels to the storage type. It rejects negative labels other than -1 and
// labels above mostLabel.
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

// unlabelled returns the labels of n unlabelled vertices.
func unlabelled(n int64) []int32 { return slices.Repeat([]int32{graph.Unlabelled}, int(n)) }

func badLabel(op, path string, v int, l, most int64) error {
	return fault.New(fault.Data, op, path, "label of vertex %d is %d, expected -1 (none) to %d", v, l, most)
}

// checkContent checks the conditions that hold for every dataset, independent of the format.
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

// splitter fills a split and rejects a vertex that is listed twice.
type splitter struct {
	op    string
	split []uint8
}

func newSplitter(op string, n int) *splitter { return &splitter{op: op, split: make([]uint8, n)} }

// mark assigns vertex v to a set. path and at are the position in the source.
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

// checkSplit returns a fault if a split file contains an invalid value.
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
