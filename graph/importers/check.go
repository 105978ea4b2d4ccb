package importers

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"

	"siafu/graph"
	"siafu/internal/fault"
)

// maxVertices is the number of distinct uint32 vertex ids.
const maxVertices = 1 << 32

func checkVertices(at input, n int64) {
	at.require(n >= 0 && n <= maxVertices, "", "%d vertices, expected 0 to %d", n, int64(maxVertices))
}

// checkPairs compares every id of src,dst pairs with the number of vertices.
func checkPairs(at input, pairs []uint32, n int64) {
	for i, v := range pairs {
		if int64(v) >= n {
			check(badEdge(at, int64(i/2), i%2, int64(v), n))
		}
	}
}

// badEdge returns the fault of an edge with an end v that is not a vertex: its source (end 0) or
// destination (end 1).
func badEdge(at input, edge int64, end int, v, n int64) error {
	return at.bad("edge %d: %s %d is outside the vertices 0..%d", edge, [2]string{"source", "destination"}[end], v, n-1)
}

// checkFinite refuses NaN and infinity in features [rows x dim].
func checkFinite(at input, x []float32, dim int) {
	// The exponent bits are all ones only in NaN and infinity.
	const exponent = 0x7f800000
	for i, v := range x {
		if math.Float32bits(v)&exponent == exponent {
			check(at.bad("feature %d of vertex %d is %v", i%dim, i/dim, v).Then("replace it with a finite number"))
		}
	}
}

// checkRange refuses negative labels other than -1, and labels above the last class. classes is 0
// if unknown: then the last class is the maximum of a dataset.
func checkRange[T int32 | int64](at input, labels []T, classes int) {
	if classes <= 0 {
		classes = graph.MaxClasses(int64(len(labels)))
	}
	for v, l := range labels {
		if l < T(graph.Unlabelled) || int64(l) >= int64(classes) {
			check(at.bad("label of vertex %d is %d, expected -1 (none) to %d", v, l, classes-1))
		}
	}
}

// checkLabels converts labels to the storage type, if they are in the range of any dataset.
func checkLabels(at input, labels []int64) []int32 {
	checkRange(at, labels, 0)
	out := make([]int32, len(labels))
	for v, l := range labels {
		out[v] = int32(l)
	}
	return out
}

// severalLabels is the remedy for multi-label data in a format without them.
const severalLabels = "import multi-label data as npz with y [vertices x labels], or as csv with --label A,B,C"

// unlabelled returns the labels of n unlabelled vertices.
func unlabelled(n int64) []int32 { return slices.Repeat([]int32{graph.Unlabelled}, int(n)) }

// checkContent checks the conditions that hold for every dataset, independent of the format.
func checkContent(at input, c *graph.Content) {
	n := int(c.Vertices)
	at.require(len(c.Labels) == n && len(c.Split) == n && c.Features.Rows == n, "",
		"%d vertices, but %d labels, %d entries of the split, %d rows of features", n, len(c.Labels), len(c.Split), c.Features.Rows)
	for v, s := range c.Split {
		if s != graph.SplitNone && c.Labels[v] == graph.Unlabelled && c.Task != graph.Links {
			check(at.bad("vertex %d is in the %s set and has no label", v, splitNames[s]).Then("take it out of the split"))
		}
	}
}

var splitNames = [4]string{"no", "training", "validation", "test"}

// splitter fills a split and rejects a vertex that is listed twice.
type splitter []uint8

// mark assigns vertex v to a set. at and entry are the position in the source.
func (s splitter) mark(at input, entry int, v int64, set uint8) {
	if v < 0 || v >= int64(len(s)) {
		check(at.bad("entry %d: %d is outside the vertices 0..%d", entry, v, len(s)-1))
	}
	if had := s[v]; had != graph.SplitNone {
		check(at.bad("entry %d: vertex %d of the %s set is in the %s set already", entry, v, splitNames[set], splitNames[had]).
			Then("each vertex may be in one set, once"))
	}
	s[v] = set
}

func (s splitter) markAll(at input, vs []int64, set uint8) {
	for i, v := range vs {
		s.mark(at, i, v, set)
	}
}

// indexMask is the remedy for a list of vertices where a mask is expected.
const indexMask = "write a list of vertices as a mask: mask = zeros(n, bool); mask[list] = True"

// markMask marks the vertices whose entries of a mask [n] are not 0.
func (s splitter) markMask(at input, mask []int64, set uint8) {
	for v, in := range mask {
		at.require(in == 0 || in == 1, indexMask, "entry %d of the mask is %d, expected 0 or 1", v, in)
		if in != 0 {
			s.mark(at, v, int64(v), set)
		}
	}
}

// checkSplit refuses values that are not a set of a split.
func checkSplit[T uint8 | int64](at input, split []T) {
	for v, s := range split {
		if s < graph.SplitNone || s > graph.SplitTest {
			check(at.bad("split of vertex %d is %d, expected 0 (none), 1 (training), 2 (validation), 3 (test)", v, s))
		}
	}
}

// failure is a panic that ends an import with an error.
type failure struct{ err error }

// check ends the import if err is not nil; catch returns the error.
//
// Design note: an importer has dozens of reads that can fail. After a failure none of its
// functions has anything to do, because resources owns all files and memory. A failure
// therefore panics, and load converts the panic to an error. Parsers of blocks run on other
// goroutines, and a graph.EdgeSource after load: these return errors.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns v. It ends the import if err is not nil.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// catch converts a failure to *err. It must be deferred.
func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = r.err
	default:
		panic(r)
	}
}

// input is a file or folder that an import reads. Its methods check the content, and end the import
// with a fault that names op and path.
type input struct{ op, path string }

// in returns a file of the folder.
func (p input) in(name string) input { return input{p.op, filepath.Join(p.path, name)} }

// element returns an array of the file, for messages.
func (p input) element(name string) input { return input{p.op, p.path + "[" + name + "]"} }

func (p input) exists() bool { return exists(p.path) }

// bad returns a fault in the content of the file.
func (p input) bad(format string, args ...any) *fault.Error {
	return fault.New(fault.Data, p.op, p.path, format, args...)
}

// require ends the import with a fault in the content of the file unless ok. remedy may be "".
func (p input) require(ok bool, remedy, format string, args ...any) {
	if !ok {
		check(p.bad(format, args...).Then("%s", remedy))
	}
}

// refuse ends the import with a fault in the user's flags.
func (p input) refuse(remedy, format string, args ...any) {
	check(fault.New(fault.Usage, p.op, p.path, format, args...).Then("%s", remedy))
}

// system ends the import if err, of the operating system, is not nil.
func (p input) system(err error) {
	if err != nil {
		check(fault.System(p.op, p.path, err))
	}
}

func (p input) read() []byte {
	b, err := os.ReadFile(p.path)
	p.system(err)
	return b
}

func (p input) json(to any) { p.wrap(json.Unmarshal(p.read(), to)) }

// wrap ends the import if err is not nil. The fault names the file, unless err names one.
func (p input) wrap(err error) {
	if f, ok := err.(*fault.Error); ok && f.Path != "" {
		check(f)
	}
	if err != nil {
		check(&fault.Error{Op: p.op, Kind: fault.Data, Path: p.path, Err: err})
	}
}
