package predictions

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"siafu/graph"
	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/npy"
	"siafu/internal/scratch"
	"siafu/ranks/world"
)

// Files of a predictions folder; rows are in the order of ids.txt.
const (
	ClassFile       = "predictions.npy"   // int64 [vertices]; uint8 [vertices x labels]; float32 [vertices x columns]
	ProbabilityFile = "probabilities.npy" // float32 [vertices x classes]; absent for regression
	LogitFile       = "logits.npy"        // float32 [vertices x classes]
	EmbeddingFile   = "embeddings.npy"    // float32 [vertices x width]
	IDFile          = "ids.txt"           // the user's vertex ids, one per line; KIND:ID in a relational graph
	CSVFile         = "predictions.csv"
	ParquetFile     = "predictions.parquet"
	MetricsFile     = "metrics.json" // metrics of the labelled vertices, by split
)

// matrixFile is a .npy file with a temporary name. Each rank writes the rows of its own vertices.
type matrixFile struct {
	name     string
	whole    *durable.File // on rank 0, which renames the file
	file     *os.File
	header   []byte
	rowBytes int64
}

// Options selects the files to write.
type Options struct {
	Dir            string
	CSV            bool // also write predictions.csv
	ByClass        bool // with a column for the probability of each class
	Parquet        bool // also write predictions.parquet, which has these columns
	EmbeddingWidth int  // 0: no embeddings
	Pairs          bool // also write pairs.csv
	Logits         bool // also write the logits of the probabilities

	Metrics []byte // content of MetricsFile; on rank 0

	Task   string        // graph.MultiClass, …
	Of     []uint32      // vertices to write, ascending, one row each; nil: all
	Schema *graph.Schema // of the training dataset: the names of classes; on rank 0
}

// rows returns the number of vertices to write.
func (o *Options) rows(vertices int) int {
	if o.Of != nil {
		return len(o.Of)
	}
	return vertices
}

// Files writes the files of a prediction, as one of the ranks.
type Files struct {
	Options
	files    []*matrixFile
	classes  int
	isWriter bool
	first    bool // the folder had no marker, and no file has its final name yet
}

// Rows has the predictions for a rank's own vertices.
type Rows struct {
	IDs           []uint32  // dataset ids [own]
	Class         []int32   // the most probable class [own], for MultiClass
	Said          []uint8   // 0 or 1 [own x labels], for MultiLabel
	Values        []float32 // [own x columns], for Regression
	Probabilities []float32 // [own x classes]
	Logits        []float32 // [own x classes] if Options.Logits is set
	Embeddings    []float32 // [own x EmbeddingWidth]
}

const op = "predict"

// Create creates files for the given numbers of vertices and classes on rank 0 and opens them
// on all ranks. Abort them also after an error. Collective.
func Create(w world.Comm, o Options, vertices, classes int) (*Files, error) {
	p := &Files{Options: o, isWriter: w.Rank() == 0, classes: classes}
	vertices = o.rows(vertices)
	p.layout(vertices, classes)
	return p, p.share(w, vertices)
}

// share creates the files on rank 0 and broadcasts their names. Collective.
func (p *Files) share(w world.Comm, vertices int) error {
	var err error
	if p.isWriter {
		err = p.create(vertices)
	}
	if err := world.Agree(w, err); err != nil {
		return err
	}
	paths, err := world.BcastBlob(w, []byte(strings.Join(p.temporary(), "\x00")), 0)
	if err != nil {
		return err
	}
	return p.open(strings.Split(string(paths), "\x00"))
}

// temporary returns the temporary paths of the files, on rank 0.
func (p *Files) temporary() (paths []string) {
	for _, m := range p.files {
		if m.whole != nil {
			paths = append(paths, m.whole.Temporary())
		}
	}
	return paths
}

// layout lists the files with their headers and bytes per row.
func (p *Files) layout(vertices, classes int) {
	add := func(name, descr string, width int64, shape ...int) {
		p.files = append(p.files, &matrixFile{name: name, header: npy.Header(descr, shape...), rowBytes: width})
	}
	switch p.Task {
	case graph.MultiLabel:
		add(ClassFile, "|u1", int64(classes), vertices, classes)
	case graph.Links:
	case graph.Regression:
		add(ClassFile, "<f4", 4*int64(classes), vertices, classes)
	default:
		add(ClassFile, "<i8", 8, vertices)
	}
	if p.Task != graph.Regression && p.Task != graph.Links {
		add(ProbabilityFile, "<f4", 4*int64(classes), vertices, classes)
	}
	if p.Logits {
		add(LogitFile, "<f4", 4*int64(classes), vertices, classes)
	}
	if width := p.EmbeddingWidth; width > 0 {
		add(EmbeddingFile, "<f4", 4*int64(width), vertices, width)
	}
}

// bytes returns a rank's rows of each file.
func (p *Files) bytes(r Rows) [][]byte {
	var blocks [][]byte
	switch p.Task {
	case graph.MultiLabel:
		blocks = [][]byte{r.Said, mapped.Bytes(r.Probabilities)}
	case graph.Links:
	case graph.Regression:
		blocks = [][]byte{mapped.Bytes(r.Values)}
	default:
		wide := make([]int64, len(r.Class))
		for v, c := range r.Class {
			wide[v] = int64(c)
		}
		blocks = [][]byte{mapped.Bytes(wide), mapped.Bytes(r.Probabilities)}
	}
	if p.Logits {
		blocks = append(blocks, mapped.Bytes(r.Logits))
	}
	return append(blocks, mapped.Bytes(r.Embeddings))
}

func (p *Files) create(vertices int) (err error) {
	if err := durable.MkdirAll(op, p.Dir); err != nil {
		return err
	}
	if err := p.mark(); err != nil {
		return err
	}
	for _, m := range p.files {
		if m.whole, err = durable.Create(op, filepath.Join(p.Dir, m.name)); err != nil {
			return err
		}
		if _, err := m.whole.Write(m.header); err != nil {
			return err
		}
		if err := m.whole.Truncate(m.offset(vertices)); err != nil {
			return err
		}
	}
	return nil
}

func (p *Files) open(paths []string) (err error) {
	for i, m := range p.files {
		if m.file, err = os.OpenFile(paths[i], os.O_RDWR, 0); err != nil {
			return m.fault(p.Dir, err)
		}
	}
	return nil
}

func (m *matrixFile) offset(row int) int64 { return int64(len(m.header)) + m.rowBytes*int64(row) }

// fault returns a fault for err that names the final path of the file.
func (m *matrixFile) fault(dir string, err error) error {
	path := filepath.Join(dir, m.name)
	return fault.System(op, path, scratch.Named(path, err))
}

// Write writes the rows of a rank's own vertices.
func (p *Files) Write(r Rows) error {
	rows, order := p.places(r.IDs)
	blocks := p.bytes(r)
	for i, m := range p.files {
		if err := m.write(rows, order, blocks[i]); err != nil {
			return m.fault(p.Dir, err)
		}
	}
	return nil
}

// places returns the rows of these vertices in the files [own], and the positions in ids of the
// vertices to write, in the order of their rows.
func (p *Files) places(ids []uint32) (rows, order []uint32) {
	order = ascending(ids)
	if p.Of == nil {
		return ids, order
	}
	rows, written := make([]uint32, len(ids)), order[:0]
	for _, i := range order {
		if row, ok := slices.BinarySearch(p.Of, ids[i]); ok {
			rows[i] = uint32(row)
			written = append(written, i)
		}
	}
	return rows, written
}

// ascending returns the positions of ids in ascending order of ids.
func ascending(ids []uint32) []uint32 {
	order := make([]uint32, len(ids))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(ids[a], ids[b]) })
	return order
}

// writeBytes is the approximate maximal size of a write.
const writeBytes = 1 << 20

// write writes row i of rows as row ids[i] of the file, for each i of order. ids[i] must ascend in
// this order. Consecutive rows are written together.
func (m *matrixFile) write(ids, order []uint32, rows []byte) error {
	var buffer []byte
	for lo, hi := 0, 0; lo < len(order); lo = hi {
		buffer = buffer[:0]
		first := ids[order[lo]]
		for hi < len(order) && ids[order[hi]] == first+uint32(hi-lo) && len(buffer) < writeBytes {
			at := int64(order[hi]) * m.rowBytes
			buffer = append(buffer, rows[at:at+m.rowBytes]...)
			hi++
		}
		if _, err := m.file.WriteAt(buffer, m.offset(int(first))); err != nil {
			return err
		}
	}
	return m.file.Sync() // on a network file system, rank 0 cannot sync the writes of other hosts
}

// Commit renames the files after every rank has written its rows. It also writes the files that
// only rank 0 writes, with the ids of the dataset folder data.
func (p *Files) Commit(data string) error {
	if !p.isWriter {
		return nil
	}
	ds, err := graph.Open(data)
	if err != nil {
		return err
	}
	defer ds.Close()
	if err := p.mark(p.names()...); err != nil {
		return err
	}
	if err := durable.Write(op, filepath.Join(p.Dir, IDFile), func(w io.Writer) error { return p.writeIDs(w, ds) }); err != nil {
		return err
	}
	if err := durable.WriteFile(op, filepath.Join(p.Dir, MetricsFile), p.Metrics, durable.Perm); err != nil {
		return err
	}
	for _, m := range p.files {
		if err := m.whole.Commit(); err != nil {
			return err
		}
	}
	if !p.CSV && !p.Parquet {
		return nil
	}
	t, err := p.table(ds)
	if err != nil {
		return err
	}
	defer t.close()
	if p.CSV {
		err = durable.Write(op, filepath.Join(p.Dir, CSVFile), t.writeCSV)
	}
	if p.Parquet && err == nil {
		err = durable.Write(op, filepath.Join(p.Dir, ParquetFile), t.writeParquet)
	}
	return err
}

// Abort closes the files and removes those that were not renamed. It removes the marker of a new
// folder without files.
func (p *Files) Abort() {
	for _, m := range p.files {
		if m.file != nil {
			m.file.Close()
		}
		if m.whole != nil {
			m.whole.Abort()
		}
	}
	if p.isWriter && p.first {
		os.Remove(filepath.Join(p.Dir, markName))
	}
}

func (o *Options) vertex(row int) int {
	if o.Of != nil {
		return int(o.Of[row])
	}
	return row
}

func (p *Files) writeIDs(w io.Writer, ds *graph.Dataset) error {
	for row := range p.rows(int(ds.Meta.Vertices)) {
		io.WriteString(w, ds.VertexName(p.vertex(row))) // w returns its first error again
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	return nil
}

// decimals formats a probability for predictions.csv.
func decimals(x float32) string { return strconv.FormatFloat(float64(x), 'f', 4, 32) }

// splitNames are the names of the Split… values.
var splitNames = [...]string{"", "train", "val", "test"}
