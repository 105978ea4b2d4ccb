package kernels

import "siafu/kernels/internal/avx"

// UseIn selects the instructions of an optimiser, like Team.Use.
func UseIn(o Optimizer, kernel string) error {
	var t Team
	if err := t.Use(kernel); err != nil {
		return err
	}
	switch o := o.(type) {
	case *sgd:
		o.set = t.set
	case *adam:
		o.set = t.set
	}
	return nil
}

// Few has the functions for rows of few bits, with one instruction set.
type Few struct{ set avx.Set }

// FewWith selects the instructions, like Team.Use.
func FewWith(kernel string) (Few, error) {
	var t Team
	err := t.Use(kernel)
	return Few{t.set}, err
}

func (f Few) Extent(x []float32) (lo, hi float32, finite bool) {
	if f.set == avx.None {
		return extent(x)
	}
	return f.set.Extent(x)
}

func (f Few) Codes(r Rounding, dst []byte, x []float32, g Grid, bits int, id uint32) {
	r.set = f.set
	r.Codes(dst, x, g, bits, id)
}

func (f Few) Values(g Grid, dst []float32, codes []byte, bits int, add bool) {
	g.values(f.set, dst, codes, bits, add)
}

func (f Few) NarrowRow(dst []BF16, x []float32) { narrowRow(f.set, bitsOf(dst), x, 1) }

func (f Few) WidenRow(dst []float32, x []BF16, add bool) { widenRow(f.set, dst, bitsOf(x), add) }

// RunWeighted calls body for consecutive ranges of the rows 0..len(offsets)-2
// that hold similar numbers of edges, row r having offsets[r+1]-offsets[r].
// Ranges may be empty of edges, never of rows; a single row is never split.
func (t *Team) RunWeighted(offsets []int64, body func(lo, hi int)) {
	if n := len(offsets) - 1; n > 0 {
		t.runWeighted(offsets[:n], offsets[n], bodyFunc(body))
	}
}

// ChooseSlack is the number of columns that Copy of an EdgeMask may overwrite after its destination.
const ChooseSlack = avx.ChooseSlack

// Copy copies the columns that v selects with the instructions of t. Their bits in m start at bit first.
func (m EdgeMask) Copy(t *Team, dst, cols []uint32, first int64, v VertexMask) int {
	return m.copy(t.set, dst, cols, first, v)
}

// CodedSlack is the number of bytes after the code that decoders may read, and CodedGroup the number of
// columns that they may write after the decoded ones.
const (
	CodedSlack = codedSlack
	CodedGroup = codedGroup
)

// Code returns the code of the columns, with its slack.
func (c *CodedColumns) Code() []byte { return c.data }

// WithCode returns c with other memory of the code.
func (c *CodedColumns) WithCode(data []byte) *CodedColumns {
	other := *c
	other.data = data
	return &other
}

// Decode decodes the rows [lo, hi) with the instructions of t.
func (c *CodedColumns) Decode(t *Team, dst []uint32, lo, hi int) {
	var cursor codedCursor
	c.seek(&cursor, lo)
	c.decode(t.set, dst, &cursor, hi-lo)
}
