package importers

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/npy"
	"siafu/internal/pickle"
)

var planetoidFormat = importer{
	entry: entry{Name: "planetoid", Help: "`ind.NAME.*` (cora, citeseer, pubmed): a folder or `DIR/ind.NAME`"},
	read:  planetoid, recognises: isPlanetoid, onlySplit: "the public split is the only one",
}

// planetoidVal is the number of validation vertices of Kipf & Welling (2017).
const planetoidVal = 500

// planetoidPrefix returns "dir/ind.NAME" for a folder with one dataset (or the named one), for
// that prefix itself, and for any of its files.
func planetoidPrefix(src, name string) (string, bool) {
	if info, err := os.Stat(src); err == nil && info.IsDir() {
		if name != "" && exists(filepath.Join(src, "ind."+name+".graph")) {
			return filepath.Join(src, "ind."+name), true
		}
		found, _ := filepath.Glob(filepath.Join(escapeGlob(src), "ind.*.graph"))
		if len(found) != 1 {
			return "", false
		}
		return strings.TrimSuffix(found[0], ".graph"), true
	}
	base := filepath.Base(src)
	parts := strings.Split(base, ".")
	if len(parts) < 2 || parts[0] != "ind" {
		return "", false
	}
	prefix := filepath.Join(filepath.Dir(src), "ind."+parts[1])
	return prefix, exists(prefix + ".graph")
}

// escapeGlob makes a path match only itself.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func isPlanetoid(src string) bool {
	_, ok := planetoidPrefix(src, "")
	return ok
}

// citation has the eight files of one planetoid dataset.
type citation struct {
	prefix       input
	x, allx, tx  *matrix
	y, ally, ty  [][]int64 // one-hot rows
	test         []int64   // vertex of each row of tx
	vertices     int64
	labelClasses int
}

// planetoid reads the ind.NAME.* files of Yang et al. (2016) with the semantics of Kipf &
// Welling's loader: row k of tx belongs to vertex test.index[k]. The first len(y) vertices are
// for training, the next 500 for validation, and the vertices of test.index for the test.
// Vertices without data between them have no features and no label (15 in citeseer).
func planetoid(k *resources, o Options) *graph.Content {
	prefix, ok := planetoidPrefix(o.Src, o.Name)
	if !ok {
		check(fault.New(fault.Missing, k.op, o.Src, "there is no file ind.NAME.graph, or there are several").
			Then("give the path as DIR/ind.NAME"))
	}
	d := &citation{prefix: input{k.op, prefix}}
	d.x, d.allx, d.tx = d.matrix(".x"), d.matrix(".allx"), d.matrix(".tx")
	d.y, d.ally, d.ty = d.oneHot(".y"), d.oneHot(".ally"), d.oneHot(".ty")
	d.readTest()
	d.agree()
	rows := d.testRows()
	return &graph.Content{
		Source: "planetoid " + filepath.Base(prefix), Vertices: d.vertices, Symmetrise: true,
		Features: graph.Features{Rows: int(d.vertices), Dim: int(d.allx.cols), Sparse: d.features(rows)},
		Labels:   d.labels(rows), Classes: d.labelClasses, Split: d.split(o), Edges: d.edges(k),
		LoopsUnused: true, // PyTorch Geometric's reader drops them
	}
}

func (d *citation) at(ext string) input { return input{d.prefix.op, d.prefix.path + ext} }

func (d *citation) pickle(ext string) any {
	at := d.at(ext)
	v, err := pickle.Decode(at.read())
	at.wrap(err)
	return v
}

func (d *citation) matrix(ext string) *matrix { return pickledCSR(d.at(ext), d.pickle(ext)) }

// oneHot reads an array [rows x classes].
func (d *citation) oneHot(ext string) [][]int64 {
	at := d.at(ext)
	a, err := pickle.NumPy(d.pickle(ext))
	at.wrap(err)
	at.require(len(a.Shape) == 2 && (d.labelClasses == 0 || a.Shape[1] == d.labelClasses) && a.Shape[1] > 0, "",
		"labels have shape %v, expected one column for each of %d classes", a.Shape, d.labelClasses)
	flat, err := a.Int64s()
	at.wrap(err)
	d.labelClasses = a.Shape[1]
	rows := make([][]int64, a.Shape[0])
	for i := range rows {
		rows[i] = flat[i*d.labelClasses : (i+1)*d.labelClasses]
	}
	return rows
}

// readTest reads test.index, one number per line.
func (d *citation) readTest() {
	at := d.at(".test.index")
	line := 0
	for text := range strings.Lines(string(at.read())) {
		line++
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		v, err := strconv.ParseInt(text, 10, 64)
		at.require(err == nil && v >= 0 && v < maxVertices, "", "line %d: %.40q is not a vertex id", line, text)
		d.test = append(d.test, v)
	}
}

// csrClasses lists the class names in pickles of SciPy's versions.
var csrClasses = []pickle.Global{"scipy.sparse.csr csr_matrix", "scipy.sparse._csr csr_matrix"}

func pickledCSR(at input, v any) *matrix {
	o, ok := v.(*pickle.Object)
	at.require(ok && slices.Contains(csrClasses, o.Class), "", "%s is not a SciPy csr_matrix", pickle.Describe(v))
	state, ok := o.State.(*pickle.Dict)
	at.require(ok, "", "the state of a csr_matrix is %s", pickle.Describe(o.State))
	shape, _ := state.Get("_shape").(pickle.Tuple)
	at.require(len(shape) == 2, "", "the shape of a csr_matrix is %s", pickle.Describe(state.Get("_shape")))
	rows, ok1 := shape[0].(int64)
	cols, ok2 := shape[1].(int64)
	at.require(ok1 && ok2, "", "the shape of a csr_matrix is (%s, %s)", pickle.Describe(shape[0]), pickle.Describe(shape[1]))
	get := func(key string) *npy.Array {
		a, err := pickle.NumPy(state.Get(key))
		at.wrap(err)
		return a.Called(at.element(key).path)
	}
	m := &matrix{
		input: at, rows: rows, cols: cols, indptr: must(get("indptr").Int64s()),
		indices: must(get("indices").Uint32s()), data: must(get("data").Float32s()),
	}
	m.check()
	return m
}

// agree compares the sizes of the files and derives the number of vertices.
func (d *citation) agree() {
	all := func(ok bool, format string, args ...any) {
		d.at(".*").require(ok, "take all files from one dataset", format, args...)
	}
	all(d.x.rows == int64(len(d.y)) && d.allx.rows == int64(len(d.ally)) && d.tx.rows == int64(len(d.ty)),
		"x, allx, tx have %d, %d, %d rows, but y, ally, ty %d, %d, %d", d.x.rows, d.allx.rows, d.tx.rows, len(d.y), len(d.ally), len(d.ty))
	all(d.x.cols == d.allx.cols && d.tx.cols == d.allx.cols, "x, allx, tx have %d, %d, %d columns", d.x.cols, d.allx.cols, d.tx.cols)
	all(d.x.rows <= d.allx.rows, "x has %d rows, more than allx with %d", d.x.rows, d.allx.rows)
	all(d.tx.rows == int64(len(d.test)), "tx has %d rows, test.index %d lines", d.tx.rows, len(d.test))
	at := d.at(".test.index")
	d.vertices = d.allx.rows
	for i, v := range d.test {
		at.require(v >= d.allx.rows, "", "line %d: vertex %d is one of the %d that allx describes", i+1, v, d.allx.rows)
		d.vertices = max(d.vertices, v+1)
	}
	// A gap takes memory that no file justifies. citeseer has a gap of 15.
	known := d.allx.rows + d.tx.rows
	at.require(d.vertices-known <= known, "", "vertex %d is the largest, but only %d have features", d.vertices-1, known)
	checkVertices(at, d.vertices)
}

// testRows returns the row of tx and ty of each vertex after the rows of allx, -1 for a gap.
func (d *citation) testRows() []int {
	rows := slices.Repeat([]int{-1}, int(d.vertices-d.allx.rows))
	for i, v := range d.test {
		row := &rows[v-d.allx.rows]
		d.at(".test.index").require(*row < 0, "", "line %d: vertex %d occurs twice", i+1, v)
		*row = i
	}
	return rows
}

// features returns the rows of allx, then the given rows of tx.
func (d *citation) features(rows []int) *graph.SparseRows {
	s, t := d.allx.sparseRows(), d.tx.sparseRows()
	for _, r := range rows {
		if r >= 0 {
			s.Cols = append(s.Cols, t.Cols[t.Offsets[r]:t.Offsets[r+1]]...)
			s.Vals = append(s.Vals, t.Vals[t.Offsets[r]:t.Offsets[r+1]]...)
		}
		s.Offsets = append(s.Offsets, int64(len(s.Cols)))
	}
	return s
}

// labels returns the classes of the one-hot rows of ally, then of the given rows of ty. A row of
// zeros has no class.
func (d *citation) labels(rows []int) []int32 {
	labels := make([]int32, 0, d.vertices)
	for i, row := range d.ally {
		labels = append(labels, class(d.at(".ally"), i, row))
	}
	for _, r := range rows {
		l := graph.Unlabelled
		if r >= 0 {
			l = class(d.at(".ty"), r, d.ty[r])
		}
		labels = append(labels, l)
	}
	return labels
}

// class returns the index of the one in row number i.
func class(at input, i int, row []int64) int32 {
	l := graph.Unlabelled
	for column, v := range row {
		if v == 0 {
			continue
		}
		at.require(v == 1, "", "row %d column %d is %d, expected 0 or 1", i, column, v)
		at.require(l == graph.Unlabelled, severalLabels, "row %d has the labels %d and %d", i, l, column)
		l = int32(column)
	}
	return l
}

func (d *citation) split(o Options) []uint8 {
	s := make(splitter, d.vertices)
	train := int64(len(d.y))
	val := min(planetoidVal, d.allx.rows-train)
	if val < planetoidVal {
		o.Log("path=%s.allx validation=%d, fewer than the usual %d", d.prefix.path, val, planetoidVal)
	}
	for v := range train + val {
		s[v] = graph.SplitTrain
		if v >= train {
			s[v] = graph.SplitVal
		}
	}
	s.markAll(d.at(".test.index"), d.test, graph.SplitTest)
	return s
}

// edges reads the graph, a dict from each vertex to a list of its neighbours.
func (d *citation) edges(k *resources) graph.EdgeSource {
	at, v := d.at(".graph"), d.pickle(".graph")
	items, _ := v.(*pickle.Dict)
	if o, ok := v.(*pickle.Object); ok && o.Class == "collections defaultdict" {
		items = &o.Items
	}
	at.require(items != nil, "", "%s is not a dict of neighbours", pickle.Describe(v))
	out := newEdgeBuffer(k, at)
	of := map[*pickle.List]any{}
	for i, key := range items.Keys {
		list, ok := items.Values[i].(*pickle.List)
		src, whole := key.(int64)
		at.require(ok && whole, "", "the neighbours of %s are %s, expected a list", pickle.Describe(key), pickle.Describe(items.Values[i]))
		// A pickle can repeat a list of any length in two bytes.
		other, shared := of[list]
		at.require(!shared, "", "vertices %s and %s share one list object of neighbours", pickle.Describe(other), pickle.Describe(key))
		of[list] = key
		for j, item := range list.Items {
			dst, whole := item.(int64)
			if !whole {
				check(at.bad("neighbour %d of vertex %d is %s", j, src, pickle.Describe(item)))
			}
			for end, v := range [2]int64{src, dst} {
				if v < 0 || v >= d.vertices {
					check(badEdge(at, out.pairs, end, v, d.vertices))
				}
			}
			out.add([]uint32{uint32(src), uint32(dst)})
		}
	}
	return out
}
