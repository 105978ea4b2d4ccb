package codec

import (
	"encoding/binary"
	"fmt"
	"math"

	"siafu/internal/mapped"
	"siafu/kernels"
)

// Key identifies the exchange of a block. A codec with random rounding derives its random
// numbers from the key and the rows' ids, so that a run is reproducible.
type Key struct {
	Seed     uint64
	Epoch    int
	Layer    int
	Backward bool
	From     int // the rank that encodes; random numbers of sums depend on it
	// OutsideTraining marks rows that do not belong to the series of training epochs, such as
	// rows of an evaluation. Error
	// feedback ignores them.
	OutsideTraining bool
}

// Rows are the rows of a block in place: row i is row Index[i] of X [? x Cols], or row i if
// Index is nil. Indices after the last row of X refer to More. Codecs derive random numbers
// from IDs [Len], the dataset ids; nil: the row numbers. Sums [Len] reports which rows are sums
// (nil: none). The id of a sum is the id of its destination.
type Rows struct {
	X, More    []float32
	Cols, Len  int
	Index, IDs []uint32
	Sums       []bool
}

// Row returns row i.
func (r *Rows) Row(i int) []float32 {
	if r.Index != nil {
		i = int(r.Index[i])
	}
	x, at := r.X, i*r.Cols
	if at >= len(x) {
		x, at = r.More, at-len(x)
	}
	return x[at : at+r.Cols]
}

func (r *Rows) id(i int) uint32 {
	if r.IDs == nil {
		return uint32(i)
	}
	return r.IDs[i]
}

// roundings are the random numbers of rows and of sums.
type roundings struct{ rows, sums kernels.Rounding }

func newRoundings(k Key) roundings {
	r := kernels.NewRounding(k.Seed, k.Epoch, k.Layer, k.Backward)
	return roundings{r, r.OfSums(k.From)}
}

// of returns the random numbers for row i.
func (d *roundings) of(r *Rows, i int) *kernels.Rounding {
	if r.Sums != nil && r.Sums[i] {
		return &d.sums
	}
	return &d.rows
}

// Part returns the rows from..to-1.
func (r Rows) Part(from, to int) Rows {
	if r.Index != nil {
		r.Index = r.Index[from:to]
	} else {
		r.X = r.X[from*r.Cols : to*r.Cols]
	}
	if r.IDs != nil {
		r.IDs = r.IDs[from:to]
	}
	if r.Sums != nil {
		r.Sums = r.Sums[from:to]
	}
	r.Len = to - from
	return r
}

// ID identifies the codec of a block.
type ID struct{ Codec, Param, Pack byte }

// Codec encodes rows as payloads and decodes them.
type Codec interface {
	// Name returns the form that ByName accepts.
	Name() string
	ID() ID
	// Lossless reports whether Decode restores the same bits.
	Lossless() bool
	// Size returns the length of the payload of rows x cols finite numbers: exact if fixed,
	// otherwise an upper bound.
	Size(rows, cols int) (bytes int, fixed bool)
	// Encode appends the payload of src to dst.
	Encode(dst []byte, src Rows, k Key) []byte
	// Decode sets the rows of dst or, with add, adds to them; rows must then be distinct.
	// After an error any of them may have been written.
	Decode(dst Rows, payload []byte, add bool) error
}

// maxPayload bounds every codec's payload, including rows sent raw.
func maxPayload(rows, cols int) int { return rows*(5*cols+8) + 64 }

// appendRaw appends a row unchanged.
func appendRaw(dst []byte, row []float32) []byte { return append(dst, mapped.Bytes(row)...) }

// takeRaw sets row to the first floats of raw, or adds them, and returns the rest.
func takeRaw(row []float32, raw []byte, add bool) []byte {
	n := 4 * len(row)
	if !add {
		copy(mapped.Bytes(row), raw[:n])
		return raw[n:]
	}
	for j := range row {
		row[j] += math.Float32frombits(binary.LittleEndian.Uint32(raw[4*j:]))
	}
	return raw[n:]
}

// wrongLength returns the error of a payload that cannot contain the rows.
func wrongLength(got, rows, cols int) error {
	return fmt.Errorf("%d bytes do not fit %d rows of %d floats", got, rows, cols)
}
