package codec

import "siafu/kernels"

// Corrected is a codec whose sender must use a Feedback.
type Corrected struct{ Codec }

// Name returns the form that ByName accepts.
func (c Corrected) Name() string { return c.Codec.Name() + "+ef" }

// Feedback has the accumulated errors of a codec for the rows of one sender, received minus
// intended (error feedback: Karimireddy et al., "Error feedback fixes SignSGD and other
// gradient compression schemes", ICML'19, algorithm 2). Each encode sends the rows minus
// the accumulated errors, and stores the new error. Therefore the sum of received rows
// stays within one error of the sum of intended rows, also with codecs that round to
// nearest.
//
// It belongs to a fixed list of rows in one layer and one direction, and has their shape
// [rows x cols]. It is zero at first.
type Feedback []float32

// feedBack appends the payload of src minus residual to dst, and stores the new errors in residual.
// The error of a row that is not finite is reset.
func feedBack(dst []byte, c Codec, src Rows, k Key, residual Rows) []byte {
	meant, allFinite := residual, true
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
