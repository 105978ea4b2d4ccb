package importers

import (
	"bufio"
	"bytes"
	"fmt"
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
func planetoid(k *keeper, o Options) (*graph.Content, error) {
	prefix, ok := planetoidPrefix(o.Src, o.Name)
	if !ok {
		return nil, fault.New(fault.Missing, opPlanetoid, o.Src, "there is no file ind.NAME.graph, or there are several").
			Then("give the path as DIR/ind.NAME")
	}
	d := &citation{prefix: prefix}
	if err := d.read(); err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(filepath.Base(prefix), "ind.")
	c := &graph.Content{
		Source: "planetoid ind." + name, Vertices: d.vertices, Symmetrise: true,
		Features: graph.Features{Rows: int(d.vertices), Dim: int(d.allx.cols)},
	}
	var err error
	if c.Features.Sparse, err = d.features(); err != nil {
		return nil, err
	}
	if c.Labels, err = d.labels(); err != nil {
		return nil, err
	}
	c.Classes = d.labelClasses
	if c.Split, err = d.split(o); err != nil {
		return nil, err
	}
	c.Edges, err = d.edges(k)
	return c, err
}

// read loads all files but the graph.
func (d *citation) read() error {
	matrices := [...]**matrix{&d.x, &d.allx, &d.tx}
	for i, ext := range [...]string{".x", ".allx", ".tx"} {
		v, err := d.pickle(ext)
		if err != nil {
			return err
		}
		if *matrices[i], err = pickledCSR(opPlanetoid, d.prefix+ext, v); err != nil {
			return d.bad(ext, err)
		}
	}
	labels := [...]*[][]int64{&d.y, &d.ally, &d.ty}
	for i, ext := range [...]string{".y", ".ally", ".ty"} {
		v, err := d.pickle(ext)
		if err != nil {
			return err
		}
		if *labels[i], err = d.oneHot(v); err != nil {
			return d.bad(ext, err)
		}
	}
	var err error
	if d.test, err = readIndex(d.prefix + ".test.index"); err != nil {
		return err
	}
	return d.agree()
}

// bad converts an error to a Data fault, unless it is a fault already.
func (d *citation) bad(ext string, err error) error {
	if f, ok := err.(*fault.Error); ok && f.Path != "" {
		return f
	}
	return &fault.Error{Op: opPlanetoid, Kind: fault.Data, Path: d.prefix + ext, Err: err}
}

func (d *citation) pickle(ext string) (any, error) {
	b, err := os.ReadFile(d.prefix + ext)
	if err != nil {
		return nil, fault.System(opPlanetoid, d.prefix+ext, err)
	}
	v, err := pickle.Decode(b)
	if err != nil {
		return nil, d.bad(ext, err)
	}
	return v, nil
}

// oneHot reads an array [rows x classes].
func (d *citation) oneHot(v any) ([][]int64, error) {
	a, err := torchfile.NumPy(v)
	if err != nil {
		return nil, err
	}
	if len(a.Shape) != 2 || d.labelClasses != 0 && a.Shape[1] != d.labelClasses || a.Shape[1] == 0 {
		return nil, fmt.Errorf("labels have shape %v, expected one column for each of %d classes", a.Shape, d.labelClasses)
	}
	flat, err := a.Int64s()
	if err != nil {
		return nil, err
	}
	d.labelClasses = a.Shape[1]
	rows := make([][]int64, a.Shape[0])
	for i := range rows {
		rows[i] = flat[i*d.labelClasses : (i+1)*d.labelClasses]
	}
	return rows, nil
}

// readIndex reads one number per line.
func readIndex(path string) ([]int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.System(opPlanetoid, path, err)
	}
	var out []int64
	lines := bufio.NewScanner(bytes.NewReader(b))
	for at := 1; lines.Scan(); at++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < 0 || v >= maxVertices {
			return nil, fault.New(fault.Data, opPlanetoid, path, "line %d: %.40q is not a vertex id", at, text)
		}
		out = append(out, v)
	}
	if err := lines.Err(); err != nil {
		return nil, &fault.Error{Op: opPlanetoid, Kind: fault.Data, Path: path, Err: err}
	}
	return out, nil
}
