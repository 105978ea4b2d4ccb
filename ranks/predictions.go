package ranks

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"siafu/graph"
	"siafu/graph/durable"
	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/graph/npy"
	"siafu/graph/scratch"
	"siafu/kernels"
	"siafu/ranks/world"
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
	whole    *durable.File // on rank 0, which gives it its name
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
	first    bool // nothing of siafu's was in the folder, and nothing has its name yet
}

const opPredict = "predict"

// newPredictions creates the files on rank 0 and opens them everywhere. They are
// to be aborted also after an error. Collective over the world.
func newPredictions(r *run, t *trainer, c PredictConfig) (*predictions, error) {
	p := &predictions{dir: c.Out, isWriter: r.rank == 0}
	if c.Embeddings {
		p.width = t.net.Dims[t.net.Layers()-1]
	}
	p.layout(int(r.meta.Vertices), r.meta.Classes)
	if err := p.share(r); err != nil {
		return p, err
	}
	return p, nil
}

// share creates the files on rank 0 and tells everybody under which names.
// Collective over the world.
func (p *predictions) share(r *run) error {
	var err error
	if p.isWriter {
		err = p.create(int(r.meta.Vertices))
	}
	if err := agree(r.world, err); err != nil {
		return err
	}
	paths, err := world.BcastBlob(r.world, []byte(strings.Join(p.temporary(), "\x00")), 0)
	if err != nil {
		return err
	}
	return agree(r.world, p.open(strings.Split(string(paths), "\x00")))
}

// temporary are the paths that the files have on rank 0.
func (p *predictions) temporary() (paths []string) {
	for _, m := range p.files {
		if m.whole != nil {
			paths = append(paths, m.whole.Temporary())
		}
	}
	return paths
}

// layout lists the files: name, header, bytes a row.
func (p *predictions) layout(vertices, classes int) {
	class, prob := npy.HeaderInt64(vertices), npy.HeaderFloat32(vertices, classes)
	p.files = []*matrixFile{
		{name: classFile, header: int64(len(class)), rowBytes: 8},
		{name: probabilityFile, header: int64(len(prob)), rowBytes: 4 * int64(classes)},
	}
	if p.width > 0 {
		h := npy.HeaderFloat32(vertices, p.width)
		p.files = append(p.files, &matrixFile{name: embeddingFile, header: int64(len(h)), rowBytes: 4 * int64(p.width)})
	}
}

func (p *predictions) create(vertices int) (err error) {
	if err := durable.MkdirAll(opPredict, p.dir); err != nil {
		return err
	}
	if err := p.mark(); err != nil {
		return err
	}
	for _, m := range p.files {
		header := npy.HeaderInt64(vertices)
		if m.name != classFile {
			header = npy.HeaderFloat32(vertices, int(m.rowBytes/4))
		}
		if m.whole, err = durable.Create(opPredict, filepath.Join(p.dir, m.name)); err != nil {
			return err
		}
		if _, err := m.whole.Write(header); err != nil {
			return err
		}
		if err := m.whole.Truncate(m.header + m.rowBytes*int64(vertices)); err != nil {
			return err
		}
	}
	return nil
}

func (p *predictions) open(paths []string) (err error) {
	for i, m := range p.files {
		if m.file, err = os.OpenFile(paths[i], os.O_RDWR, 0); err != nil {
			return m.fault(p.dir, err)
		}
	}
	return nil
}

// fault is err about the name that the file will have.
func (m *matrixFile) fault(dir string, err error) error {
	path := filepath.Join(dir, m.name)
	return fault.System(opPredict, path, scratch.Named(path, err))
}

// writeRows writes class, probabilities and embedding of the own vertices.
func (p *predictions) writeRows(t *trainer, logits kernels.Mat) error {
	own := t.shard.NumOwn()
	ops := t.crew.teams[0]
	class := kernels.NewVector[int32](ops, t.arena, own)
	ops.Argmax(class, logits)
	ops.Softmax(logits, logits)
	wide := make([]int64, own)
	for v, c := range kernels.FetchVector(ops, class) {
		wide[v] = int64(c)
	}
	blocks := [][]byte{mapped.Bytes(wide), mapped.Bytes(kernels.Fetch(ops, logits, new([]float32)))}
	if p.width > 0 {
		blocks = append(blocks, mapped.Bytes(t.embeddings()))
	}
	order := ascending(t.shard.Own)
	for i, m := range p.files {
		if err := m.write(t.shard.Own, order, blocks[i]); err != nil {
			return m.fault(p.dir, err)
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
			return err
		}
	}
	return m.file.Sync() // other hosts than rank 0's hold what they have written
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
	if err := p.mark(c.files()...); err != nil {
		return err
	}
	if err := durable.Write(opPredict, filepath.Join(p.dir, idFile), func(w io.Writer) error { return writeIDs(w, ds) }); err != nil {
		return err
	}
	for _, m := range p.files {
		if err := m.whole.Commit(); err != nil {
			return err
		}
	}
	if !c.CSV {
		return nil
	}
	return durable.Write(opPredict, filepath.Join(p.dir, csvFile), func(w io.Writer) error { return p.writeCSV(w, ds) })
}

// abort closes the files and removes those that did not get their name.
func (p *predictions) abort() {
	for _, m := range p.files {
		if m.file != nil {
			m.file.Close()
		}
		if m.whole != nil {
			m.whole.Abort()
		}
	}
	if !p.isWriter {
		return
	}
	p.unmark()
}

func writeIDs(w io.Writer, ds *graph.Dataset) error {
	for v := range int(ds.Meta.Vertices) {
		io.WriteString(w, ds.IDs.At(v)) // an error sticks to w
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	return nil
}

// writeCSV writes one line a vertex: id, split, label, prediction and its
// probability; classes by their names where they have some.
func (p *predictions) writeCSV(w io.Writer, ds *graph.Dataset) error {
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
