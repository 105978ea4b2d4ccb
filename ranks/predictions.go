package ranks

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"siafu/graph"
	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/graph/npy"
	"siafu/kernels"
)

// Files of a predictions folder; rows are in the order of ids.txt.
const (
	classFile       = "predictions.npy"   // int64 [vertices]
	probabilityFile = "probabilities.npy" // float32 [vertices x classes]
	embeddingFile   = "embeddings.npy"    // float32 [vertices x width]
	idFile          = "ids.txt"           // the user's vertex ids, one a line
	csvFile         = "predictions.csv"
)

// matrixFile is a .npy file under a temporary name into which every rank
// writes the rows of its own vertices.
type matrixFile struct {
	name     string
	file     *os.File
	header   int64
	rowBytes int64
}

// predictions are the files of one rank's side of a prediction.
type predictions struct {
	dir      string
	files    []*matrixFile
	width    int // of embeddings, 0 for none
	isWriter bool
}

const temporary = ".tmp"

// newPredictions creates the files on rank 0 and opens them everywhere.
// Collective over the world.
func newPredictions(r *run, t *trainer, c PredictConfig) (*predictions, error) {
	p := &predictions{dir: c.Out, isWriter: r.rank == 0}
	if c.Embeddings {
		p.width = t.net.Dims[t.net.Layers()-1]
	}
	var err error
	if p.isWriter {
		err = p.create(int(r.meta.Vertices), r.meta.Classes)
	}
	if err := agree(r.world, err); err != nil {
		return nil, err
	}
	return p, p.open(int(r.meta.Vertices), r.meta.Classes)
}

// layout lists the files: name, header, bytes a row.
func (p *predictions) layout(vertices, classes int) []matrixFile {
	class, prob := npy.HeaderInt64(vertices), npy.HeaderFloat32(vertices, classes)
	list := []matrixFile{
		{name: classFile, header: int64(len(class)), rowBytes: 8},
		{name: probabilityFile, header: int64(len(prob)), rowBytes: 4 * int64(classes)},
	}
	if p.width > 0 {
		h := npy.HeaderFloat32(vertices, p.width)
		list = append(list, matrixFile{name: embeddingFile, header: int64(len(h)), rowBytes: 4 * int64(p.width)})
	}
	return list
}

func (p *predictions) create(vertices, classes int) error {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return fault.System("predict", p.dir, err)
	}
	for _, m := range p.layout(vertices, classes) {
		header := npy.HeaderInt64(vertices)
		if m.name != classFile {
			header = npy.HeaderFloat32(vertices, int(m.rowBytes/4))
		}
		path := filepath.Join(p.dir, m.name+temporary)
		if err := os.WriteFile(path, header, 0o644); err != nil {
			return fault.System("predict", path, err)
		}
		if err := os.Truncate(path, m.header+m.rowBytes*int64(vertices)); err != nil {
			return fault.System("predict", path, err)
		}
	}
	return nil
}

func (p *predictions) open(vertices, classes int) error {
	for _, m := range p.layout(vertices, classes) {
		path := filepath.Join(p.dir, m.name+temporary)
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return fault.System("predict", path, err)
		}
		m.file = f
		p.files = append(p.files, &m)
	}
	return nil
}

// writeRows writes class, probabilities and embedding of the own vertices.
func (p *predictions) writeRows(t *trainer, logits []float32) error {
	own, classes := t.shard.NumOwn(), t.shard.Classes
	class := make([]int32, own)
	kernels.Argmax(t.crew.teams[0], class, own, classes, logits)
	kernels.Softmax(t.crew.teams[0], logits, own, classes, logits)
	wide := make([]int64, own)
	for v, c := range class {
		wide[v] = int64(c)
	}
	blocks := [][]byte{mapped.Bytes(wide), mapped.Bytes(logits)}
	if p.width > 0 {
		blocks = append(blocks, mapped.Bytes(t.embeddings()))
	}
	order := ascending(t.shard.Own)
	for i, m := range p.files {
		if err := m.write(t.shard.Own, order, blocks[i]); err != nil {
			return err
		}
	}
	return nil
}

// ascending is the positions in ids by the ids that are there.
func ascending(ids []uint32) []uint32 {
	order := make([]uint32, len(ids))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(ids[a], ids[b]) })
	return order
}

// writeBytes is about how much is written at once.
const writeBytes = 1 << 20

// write puts row i of rows at the place of vertex ids[i], in the given order,
// in which ids ascend; rows of consecutive vertices go together.
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
		if _, err := m.file.WriteAt(buffer, m.header+m.rowBytes*int64(first)); err != nil {
			return fault.System("predict", m.file.Name(), err)
		}
	}
	if err := m.file.Sync(); err != nil {
		return fault.System("predict", m.file.Name(), err)
	}
	return nil
}

// commit gives the files their names, once every rank has written, and writes
// those that only rank 0 writes.
func (p *predictions) commit(r *run, c PredictConfig) error {
	if !p.isWriter {
		return nil
	}
	ds, err := graph.Open(r.data)
	if err != nil {
		return err
	}
	defer ds.Close()
	if err := p.text(idFile, func(w *bufio.Writer) error { return writeIDs(w, ds) }); err != nil {
		return err
	}
	for _, m := range p.files {
		if err := os.Rename(m.file.Name(), filepath.Join(p.dir, m.name)); err != nil {
			return fault.System("predict", m.file.Name(), err)
		}
	}
	if !c.CSV {
		return nil
	}
	return p.text(csvFile, func(w *bufio.Writer) error { return p.writeCSV(w, ds) })
}

// abort closes the files and removes those that did not get their name.
func (p *predictions) abort() {
	for _, m := range p.files {
		m.file.Close()
		if p.isWriter {
			os.Remove(m.file.Name())
		}
	}
}

// text writes a text file under a temporary name and renames it.
func (p *predictions) text(name string, fill func(w *bufio.Writer) error) error {
	path := filepath.Join(p.dir, name)
	f, err := os.Create(path + temporary)
	if err != nil {
		return fault.System("predict", path, err)
	}
	defer os.Remove(path + temporary)
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := fill(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return fault.System("predict", path, err)
	}
	if err := f.Sync(); err != nil {
		return fault.System("predict", path, err)
	}
	if err := os.Rename(path+temporary, path); err != nil {
		return fault.System("predict", path, err)
	}
	return nil
}

func writeIDs(w *bufio.Writer, ds *graph.Dataset) error {
	for v := range int(ds.Meta.Vertices) {
		w.WriteString(ds.IDs.At(v))
		w.WriteByte('\n')
	}
	return nil
}

// writeCSV writes one line a vertex: id, split, label, prediction and its
// probability; classes by their names where they have some.
func (p *predictions) writeCSV(w *bufio.Writer, ds *graph.Dataset) error {
	class, err := npy.ReadFile(filepath.Join(p.dir, classFile))
	if err != nil {
		return err
	}
	prob, err := mapped.OpenFile(filepath.Join(p.dir, probabilityFile))
	if err != nil {
		return err
	}
	defer prob.Close()
	classes := ds.Meta.Classes
	header := len(npy.HeaderFloat32(int(ds.Meta.Vertices), classes))
	probs := mapped.Cast[float32](prob.Bytes()[header:])
	picks, err := class.Int64s()
	if err != nil {
		return err
	}
	out := csv.NewWriter(w)
	out.Write([]string{"id", "split", "label", "prediction", "probability"})
	for v, pick := range picks {
		out.Write([]string{
			ds.IDs.At(v), splitNames[ds.Split[v]], className(ds.Meta, int64(ds.Labels[v])), className(ds.Meta, pick),
			strconv.FormatFloat(float64(probs[v*classes+int(pick)]), 'f', 4, 32),
		})
	}
	out.Flush()
	return out.Error()
}

// splitNames are the names of the Split… values.
var splitNames = [...]string{"", "train", "val", "test"}

// className is the name of a class, its number where it has none, and empty
// for a vertex without a label.
func className(m *graph.Meta, class int64) string {
	switch {
	case class < 0:
		return ""
	case class < int64(len(m.ClassNames)):
		return m.ClassNames[class]
	}
	return fmt.Sprint(class)
}
