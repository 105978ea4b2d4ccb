package kernels

import (
	"math"
	"sync"

	"siafu/kernels/internal/avx"
)

// Rows of a sparse matrix as lists, for gathers that skip zeros.
//
//	record: four values, their columns, and the number of the row's next record
//
// Record r is the first record of row r. Few rows of one-hot features have more than four
// non-zeros and need a second record. A gather adds the values of a record to the sums of their
// columns, which are in the first-level cache. Unused slots have zeros in different columns,
// because additions to one column are serialized. Sums start with +0, so that zeros do not
// change them: the bits equal the bits of dense rows.

// Lists has rows in list form. The zero value is empty.
type Lists struct {
	words      []uint64
	rows, cols int
}

const (
	recordWords  = avx.RecordWords
	recordValues = 4
)

// MostListed is the maximum number of columns of lists.
const MostListed = 1 << 16

// ListWords returns the size of the lists of a sparse matrix in words.
func ListWords(rows, nonZeros int) int { return recordWords * (rows + nonZeros/recordValues + 1) }

// NewLists makes lists of rows with cols columns in words, which has ListWords elements.
func NewLists(rows, cols int, words []uint64) Lists {
	mustFit(cols > 0 && cols <= MostListed && len(words) >= recordWords*rows)
	return Lists{words, rows, cols}
}

// IsNil reports whether l is the zero value.
func (l Lists) IsNil() bool { return l.words == nil }

// List implements Ops.
func (t *Team) List(l Lists, lo int, xs Sparse, drop *Dropout) {
	rows, x := xs.Rows(), xs.rows()
	mustFit(lo+rows <= l.rows)
	args := sparseTask{lists: l, first: lo, width: l.cols, offsets: x.Offsets, index: x.Cols, vals: x.Vals}
	runSparse(t, args, rows, rows, drop)
}

// lister writes the list of a row.
type lister struct {
	words []uint64
	cols  int // of the matrix
	at    int // the record in hand
	used  int // its used slots
	next  int // the next unused record
}

// begin starts the list of row r of l, whose non-zeros start at e. Its overflow records start at
// rows + e/4, because the e earlier non-zeros fill at most e/4 of them.
func (w *lister) begin(l Lists, r int, e int64) {
	*w = lister{words: l.words, cols: l.cols, at: r, next: l.rows + int(e/recordValues)}
	w.clear(recordValues * r % l.cols)
}

// clear fills the current record with zeros, in columns from c on.
func (w *lister) clear(c int) {
	record, places := w.record(), uint64(0)
	for i := range recordValues {
		places |= uint64(c) << (16 * i)
		if c++; c == w.cols {
			c = 0
		}
	}
	record[0], record[1], record[2], record[3] = 0, 0, places, 0
}

func (w *lister) record() []uint64 { return w.words[recordWords*w.at:][:recordWords] }

// put appends values; cols may be longer.
func (w *lister) put(cols []uint32, vals []float32) {
	for i, v := range vals {
		if w.used == recordValues {
			w.record()[3] = uint64(w.next)
			w.at, w.used, w.next = w.next, 0, w.next+1
			w.clear(0)
		}
		record, at := w.record(), 16*w.used
		record[w.used/2] |= uint64(math.Float32bits(v)) << (32 * (w.used % 2))
		record[2] = record[2]&^(0xffff<<at) | uint64(cols[i])<<at
		w.used++
	}
}

// SpMMLists implements Ops.
func (t *Team) SpMMLists(dst Mat, e Edges, l Lists, add bool) {
	mustFit(dst.Rows == e.Rows() && dst.Cols == l.cols && e.Weights.Len() == 0)
	t.gather(spmmTask{dst: dst.Host(), Gather: t.edgesOf(e), width: dst.Cols, add: add, columnMask: e.ColumnMask, edgeMask: e.EdgeMask,
		lists: l.words})
}

// listSums has buffers for the sums of a row.
var listSums = sync.Pool{New: func() any { return new([]float32) }}

// gatherLists computes the rows [lo, hi).
func (k *spmmTask) gatherLists(lo, hi int) {
	buffer := listSums.Get().(*[]float32)
	defer listSums.Put(buffer)
	sums := scratch(buffer, k.width)
	if k.set == avx.None {
		k.plainLists(sums, lo, hi)
		return
	}
	rows := rowsFor(k, k.lists)
	k.set.GatherLists(k.dst, &rows, sums, lo, hi, k.add)
}

// addListed implements addEdge for a row in a list.
func (k *spmmTask) addListed(dst []float32, c uint32, scale float32) {
	s := k.edge(c, scale)
	k.eachListed(c, func(col int, v float32) { dst[col] += float32(s * v) })
}
