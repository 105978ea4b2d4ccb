package codec

import "siafu/kernels"

// Corrected asks whoever sends with it to keep a Feedback.
type Corrected struct{ Codec }

// Name is what ByName takes.
func (c Corrected) Name() string { return c.Codec.Name() + "+ef" }

// Feedback is what a codec has lost so far of the rows of one sender, received
// less meant: error feedback (Karimireddy et al., "Error feedback fixes SignSGD
// and other gradient compression schemes", ICML'19, algorithm 2). Each encode
// sends the rows less what was lost, and keeps what is lost of that. The sum of
// what is received follows the sum of what was meant within one error then, also
// with codecs that round to the nearest.
//
// It belongs to a fixed list of rows in one layer and one direction, and takes
// as much memory as they do: [rows x cols], zero at first.
type Feedback []float32

// feedBack appends the payload of src to dst, less what has been lost of it, and
// keeps there what is lost of that. What is lost of a row that is not finite is
// forgotten.
func feedBack(dst []byte, c Codec, src Rows, k Key, lost Rows) []byte {
	meant, allFinite := lost, true
	meant.IDs, meant.Sums = src.IDs, src.Sums
	for i := range src.Len {
		row := meant.Row(i)
		kernels.ScaleRow(row, -1)
		kernels.AddRow(row, src.Row(i))
		_, _, finite := kernels.Extent(row)
		allFinite = allFinite && finite
	}
	at := len(dst)
	dst = c.Encode(dst, meant, k)
	for i := range meant.Len {
		kernels.ScaleRow(meant.Row(i), -1)
	}
	if c.Decode(meant, dst[at:], true) != nil {
		panic("codec: a payload that its codec does not decode")
	}
	if !allFinite {
		forget(&meant)
	}
	return dst
}

// forget clears the rows that are not finite.
func forget(rows *Rows) {
	for i := range rows.Len {
		if _, _, finite := kernels.Extent(rows.Row(i)); !finite {
			clear(rows.Row(i))
		}
	}
}
