package importers

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/pickle"
	"siafu/internal/torchfile"
)

var planetoidFormat = importer{
	entry: entry{Name: "planetoid", Help: "`ind.NAME.*` (cora, citeseer, pubmed): a folder or `DIR/ind.NAME`"},
	read:  planetoid, recognises: isPlanetoid, onlySplit: "the public split is the only one",
}

const opPlanetoid = "import planetoid"

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
	prefix       string
	x, allx, tx  *matrix
	y, ally, ty  [][]int64 // one-hot rows
	test         []int64   // vertex of each row of tx
	vertices     int64
	labelClasses int
}

// planetoid reads the ind.NAME.* files of Yang et al. (2016) with the semantics of Kipf &
// Welling's loader: row k of tx belongs to vertex test.index[k]; training are the first len(y)
// vertices, validation the next 500, test those of test.index. Vertices between them without
// data have no features and no label (15 in citeseer).
func planetoid(k *keeper, o Options) *graph.Content {
	prefix, ok := planetoidPrefix(o.Src, o.Name)
	if !ok {
		check(fault.New(fault.Missing, opPlanetoid, o.Src, "there is no file ind.NAME.graph, or there are several").
			Then("give the path as DIR/ind.NAME"))
	}
	d := &citation{prefix: prefix}
	d.x, d.allx, d.tx = d.matrix(".x"), d.matrix(".allx"), d.matrix(".tx")
	d.y, d.ally, d.ty = d.oneHot(".y"), d.oneHot(".ally"), d.oneHot(".ty")
	d.readTest()
	d.agree()
	rows := d.testRows()
	return &graph.Content{
		Source: "planetoid " + filepath.Base(prefix), Vertices: d.vertices, Symmetrise: true,
		Features: graph.Features{Rows: int(d.vertices), Dim: int(d.allx.cols), Sparse: d.features(rows)},
		Labels:   d.labels(rows), Classes: d.labelClasses, Split: d.split(o), Edges: d.edges(k),
	}
}

// at returns the place of a file of the dataset.
func (d *citation) at(ext string) place { return place{opPlanetoid, d.prefix + ext} }

func (d *citation) pickle(ext string) any {
	at := d.at(ext)
	v, err := pickle.Decode(at.read())
	at.wrap(err)
	return v
}

func (d *citation) matrix(ext string) *matrix {
	at := d.at(ext)
	m, err := pickledCSR(at.op, at.path, d.pickle(ext))
	at.wrap(err)
	return m
}

// oneHot reads an array [rows x classes].
func (d *citation) oneHot(ext string) [][]int64 {
	at := d.at(ext)
	a, err := torchfile.NumPy(d.pickle(ext))
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
	lines := bufio.NewScanner(bytes.NewReader(at.read()))
	for line := 1; lines.Scan(); line++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		v, err := strconv.ParseInt(text, 10, 64)
		at.require(err == nil && v >= 0 && v < maxVertices, "", "line %d: %.40q is not a vertex id", line, text)
		d.test = append(d.test, v)
	}
	at.wrap(lines.Err())
}
