package importers

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"testing"

	"siafu/internal/pickle"
	"siafu/internal/testkit/decodertest"
)

// pickler writes the pickles of tests: protocol 2, like Python 2 and NumPy.
type pickler struct{ b []byte }

func newPickler() *pickler { return &pickler{[]byte("\x80\x02")} }

func (p *pickler) raw(s string) *pickler { p.b = append(p.b, s...); return p }

func (p *pickler) int(v int) *pickler {
	p.b = binary.LittleEndian.AppendUint32(append(p.b, 'J'), uint32(v))
	return p
}

func (p *pickler) str(s string) *pickler {
	p.b = binary.LittleEndian.AppendUint32(append(p.b, 'T'), uint32(len(s)))
	return p.raw(s)
}

// array writes numpy.ndarray of the type, such as "<i4".
func (p *pickler) array(descr string, data []byte, shape ...int) *pickler {
	p.raw("cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01(")
	for _, n := range shape {
		p.int(n)
	}
	p.raw("tcnumpy\ndtype\n").str(descr[1:]).raw("K\x00K\x01\x87R(K\x03").str(descr[:1])
	p.raw("NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89")
	return p.str(string(data)).raw("tb")
}

// csr writes scipy.sparse.csr_matrix.
func (p *pickler) csr(rows, cols int, indptr, indices []int32, data []float32) *pickler {
	p.raw("cscipy.sparse.csr\ncsr_matrix\n)\x81}(").str("_shape").int(rows).int(cols).raw("\x86")
	p.str("indptr").array("<i4", little(indptr), len(indptr))
	p.str("indices").array("<i4", little(indices), len(indices))
	return p.str("data").array("<f4", little(data), len(data)).raw("ub")
}

func (p *pickler) done() []byte { return append(p.b, '.') }

// rows returns a dense csr_matrix of 2 columns.
func rows(values ...float32) []byte {
	var indptr, indices []int32
	for i := 0; i <= len(values)/2; i++ {
		indptr = append(indptr, int32(2*i))
	}
	for i := range values {
		indices = append(indices, int32(i%2))
	}
	return newPickler().csr(len(values)/2, 2, indptr, indices, values).done()
}

// oneHot is one-hot rows of two classes.
func oneHot(classes ...int) []byte {
	data := make([]int32, 2*len(classes))
	for i, c := range classes {
		data[2*i+c] = 1
	}
	return newPickler().array("<i4", little(data), len(classes), 2).done()
}

// tinyPlanetoid: allx describes vertices 0..2, tx vertex 3.
func tinyPlanetoid() map[string][]byte {
	g := newPickler().raw("ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(")
	for v, neighbour := range []int{1, 2, 0, 0} {
		g.int(v).raw("]").int(neighbour).raw("a")
	}
	return map[string][]byte{
		"ind.tiny.x":          rows(1, 2, 3, 4),
		"ind.tiny.allx":       rows(1, 2, 3, 4, 5, 6),
		"ind.tiny.tx":         rows(7, 8),
		"ind.tiny.y":          oneHot(0, 1),
		"ind.tiny.ally":       oneHot(0, 1, 1),
		"ind.tiny.ty":         oneHot(0),
		"ind.tiny.test.index": []byte("3\n"),
		"ind.tiny.graph":      g.raw("u").done(),
	}
}

// TestPlanetoidGap: vertices between the test vertices that no file describes
// have zeros for features and no label, and test.index orders the rows of tx.
func TestPlanetoidGap(t *testing.T) {
	m := with(tinyPlanetoid(), "ind.tiny.tx", rows(7, 8, 9, 10), "ind.tiny.ty", oneHot(0, 1), "ind.tiny.test.index", "5\n3\n")
	c := mustLoad(t, "planetoid", Options{Src: files(t, m)})
	if want := []float32{1, 2, 3, 4, 5, 6, 9, 10, 0, 0, 7, 8}; !reflect.DeepEqual(c.dense, want) {
		t.Errorf("features are %v, want %v", c.dense, want)
	}
	if want := []int32{0, 1, 1, 1, -1, 0}; !reflect.DeepEqual(c.Labels, want) {
		t.Errorf("labels are %v, want %v", c.Labels, want)
	}
	if want := []uint8{1, 1, 2, 3, 0, 3}; !reflect.DeepEqual(c.Split, want) {
		t.Errorf("split is %v, want %v", c.Split, want)
	}
	if !c.LoopsUnused {
		t.Error("loops of planetoid's files count, which PyTorch Geometric drops")
	}
}

func FuzzUnpickle(f *testing.F) {
	for _, b := range tinyPlanetoid() {
		f.Add(b)
	}
	for _, b := range pickles {
		f.Add([]byte(b))
	}
	f.Add([]byte("]q\x00h\x00a}h\x00h\x00s."))
	f.Fuzz(func(t *testing.T, b []byte) {
		var v any
		var err error
		decodertest.Heap(t, int64(len(b)), func() { v, err = pickle.Decode(b) })
		if err != nil {
			return
		}
		if pickle.Describe(v) == "" {
			t.Fatal("a value without a description")
		}
		if m, err := caught(func() *matrix { return pickledCSR(input{"fuzz", "fuzz"}, v) }); err == nil {
			if s, err := caught(m.sparseRows); err == nil && len(s.Offsets) != int(m.rows)+1 {
				t.Fatal(fmt.Sprint("rows are lost: ", len(s.Offsets)-1, " of ", m.rows))
			}
		}
		if a, err := pickle.NumPy(v); err == nil {
			if x, err := a.Int64s(); err == nil && len(x) != a.Len() {
				t.Fatal("elements are lost")
			}
		}
	})
}
