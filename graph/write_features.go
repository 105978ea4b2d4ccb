package graph

import (
	"math"

	"siafu/internal/arrayfile"
)

// features writes the feature matrix, dense or sparse by its fraction of non-zeros. Rows are
// divided by their sums if Content.Normalize is set. Rows pass through a buffer; the matrix is
// not copied.
func (w *writer) features() error {
	f := &w.content.Features
	if f.Draw != nil {
		w.meta.FeatureKind = "dense"
		return w.file(denseFile, featureKind, w.drawn)
	}
	nnz := f.nonZeros()
	w.meta.FeatureNNZ = nnz
	if err := w.norm(); err != nil {
		return err
	}
	if float64(nnz) < sparseBelow*float64(f.Rows)*float64(f.Dim) {
		w.meta.FeatureKind = "sparse"
		return w.file(sparseFile, featureKind, w.sparse)
	}
	w.meta.FeatureKind = "dense"
	return w.file(denseFile, featureKind, w.dense)
}

func (f *Features) nonZeros() int64 {
	n := int64(0)
	values := f.Dense
	if f.Sparse != nil {
		values = f.Sparse.Vals
	}
	for _, x := range values {
		if x != 0 {
			n++
		}
	}
	return n
}

// row calls yield for the non-zeros of row v, with their columns ascending.
func (f *Features) row(v int, yield func(col uint32, x float32)) {
	if f.Sparse != nil {
		for i := f.Sparse.Offsets[v]; i < f.Sparse.Offsets[v+1]; i++ {
			if f.Sparse.Vals[i] != 0 {
				yield(f.Sparse.Cols[i], f.Sparse.Vals[i])
			}
		}
		return
	}
	for c, x := range f.Dense[v*f.Dim : (v+1)*f.Dim] {
		if x != 0 {
			yield(uint32(c), x)
		}
	}
}

// scale returns the factor of row v: 1 or, with normalisation, one over the row's sum. A row of
// zeros is not scaled. A negative sum is an error because it would change the signs.
func (w *writer) scale(v int) (float32, error) {
	if !w.content.Normalize {
		return 1, nil
	}
	sum := 0.0
	w.content.Features.row(v, func(_ uint32, x float32) { sum += float64(x) })
	switch {
	case sum < 0:
		return 0, invalid("import without --normalize-features", "the features of vertex %d sum to %v and cannot be normalised by their sum", v, sum)
	case sum == 0:
		return 1, nil
	}
	return float32(1 / sum), nil
}

// norm computes the root mean square of the norms of the rows as written. It is not called
// for features from Draw.
func (w *writer) norm() error {
	f, squares := &w.content.Features, 0.0
	for v := range f.Rows {
		s, err := w.scale(v)
		if err != nil {
			return err
		}
		row := 0.0
		f.row(v, func(_ uint32, x float32) { row += float64(x) * float64(x) })
		squares += row * float64(s) * float64(s)
	}
	w.meta.FeatureNorm = math.Sqrt(squares / float64(max(f.Rows, 1)))
	return nil
}

// blockValues is the approximate number of values that Draw makes at a time.
const blockValues = 1 << 20

func (w *writer) dense(out *arrayfile.Writer) error {
	f := &w.content.Features
	return inBlocks(out, "dense", f.Rows, func(v int, buf []float32) ([]float32, error) {
		s, err := w.scale(v)
		at := len(buf)
		buf = append(buf, make([]float32, f.Dim)...)
		f.row(v, func(c uint32, x float32) { buf[at+int(c)] = x * s })
		return buf, err
	})
}

// drawn writes rows from Draw without normalisation and counts their non-zeros.
func (w *writer) drawn(out *arrayfile.Writer) error {
	if err := arrayfile.Begin[float32](out, "dense"); err != nil {
		return err
	}
	f := &w.content.Features
	rows := max(blockValues/f.Dim, 1)
	buf := make([]float32, min(rows, f.Rows)*f.Dim)
	for v := 0; v < f.Rows; v += rows {
		part := Features{Rows: min(rows, f.Rows-v), Dim: f.Dim}
		part.Dense = buf[:part.Rows*f.Dim]
		f.Draw(part.Dense, v)
		w.meta.FeatureNNZ += part.nonZeros()
		if err := arrayfile.Append(out, part.Dense); err != nil {
			return err
		}
	}
	return nil
}

// sparse writes offsets, columns and values, each in its own pass.
func (w *writer) sparse(out *arrayfile.Writer) error {
	f := &w.content.Features
	offsets := make([]int64, f.Rows+1)
	for v := range f.Rows {
		offsets[v+1] = offsets[v]
		f.row(v, func(uint32, float32) { offsets[v+1]++ })
	}
	if err := arrayfile.Put(out, "offsets", offsets); err != nil {
		return err
	}
	err := inBlocks(out, "cols", f.Rows, func(v int, buf []uint32) ([]uint32, error) {
		f.row(v, func(c uint32, _ float32) { buf = append(buf, c) })
		return buf, nil
	})
	if err != nil {
		return err
	}
	return inBlocks(out, "vals", f.Rows, func(v int, buf []float32) ([]float32, error) {
		s, err := w.scale(v)
		f.row(v, func(_ uint32, x float32) { buf = append(buf, x*s) })
		return buf, err
	})
}

// inBlocks writes an array in blocks; add appends the values of one row.
func inBlocks[T uint32 | float32](out *arrayfile.Writer, name string, rows int, add func(v int, buf []T) ([]T, error)) error {
	if err := arrayfile.Begin[T](out, name); err != nil {
		return err
	}
	var buf []T
	for v := range rows {
		var err error
		if buf, err = add(v, buf); err != nil {
			return err
		}
		if len(buf) >= 1<<16 || v == rows-1 {
			if err := arrayfile.Append(out, buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	return nil
}
