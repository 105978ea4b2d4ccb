package codec

import "siafu/kernels"

// Coded is a codec that a kernels.Wire can also encode and decode, except for rows that are
// sent raw, which follow the output of the kernels.
type Coded interface {
	Codec
	// Bits is the identifier of the codec in a Wire.
	Bits() int
	// Slack is the number of zero bytes after the output of the kernels.
	Slack() int
	// Raw reports whether row i of rows x cols numbers is sent raw.
	Raw(payload []byte, i, rows, cols int) bool
}

var (
	_ Coded = bfloat16{}
	_ Coded = (*uniform)(nil)
)

func (bfloat16) Bits() int                      { return 16 }
func (bfloat16) Slack() int                     { return 0 }
func (bfloat16) Raw([]byte, int, int, int) bool { return false }
func (u *uniform) Bits() int                    { return u.bits }
func (u *uniform) Slack() int                   { return kernels.CodeSlack }

func (u *uniform) Raw(payload []byte, i, rows, cols int) bool {
	grids, _ := splitGrids(payload, gridsOf(rows, cols))
	return grids.at(i/kernels.GridRows(cols)).Step == rawStep
}

// Coded returns the payload of a block, whose first size bytes the kernels decode. It
// passes each row that is sent raw to put, with its number.
func (b Block) Coded(c Coded, put func(i int, row []byte)) (payload []byte, err error) {
	size, _ := c.Size(b.Rows, b.Cols)
	if len(b.payload) < size {
		return nil, wrongLength(len(b.payload), b.Rows, b.Cols)
	}
	payload, raw := b.payload[:size], b.payload[size:]
	for i := range b.Rows {
		if !c.Raw(payload, i, b.Rows, b.Cols) {
			continue
		}
		if len(raw) < 4*b.Cols {
			return nil, wrongLength(len(b.payload), b.Rows, b.Cols)
		}
		put(i, raw[:4*b.Cols])
		raw = raw[4*b.Cols:]
	}
	if len(raw) > 0 {
		return nil, wrongLength(len(b.payload), b.Rows, b.Cols)
	}
	return payload, nil
}

// Draws returns the random numbers for rounding rows and sums.
func Draws(k Key) (rows, sums kernels.Rounding) {
	d := newRoundings(k)
	return d.rows, d.sums
}
