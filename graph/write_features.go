package graph

import (
	"cmp"
	"math"

	"siafu/internal/arrayfile"
)

// features writes the feature matrix, dense or sparse by its fraction of non-zeros. Rows are
// divided by their sums if Content.Normalize is set and there are no relations. Rows pass through a buffer; the matrix is
// not copied.
func (w *writer) features() error {
	f := &w.content.Features
	w.meta.FeatureKind = DenseFeatures
	if w.content.FeatureFormat == Bfloat16 {
		w.meta.FeatureKind = HalfFeatures
	}
	if f.Draw != nil {
		return w.file(denseFile, featureKind, w.drawn)
	}
	w.meta.FeatureNNZ = f.nonZeros()
	if r := w.content.Relations; r != nil && len(r.Kinds) > 1 || // each kind has zeros in the columns of the others
		float64(w.meta.FeatureNNZ) < sparseBelow*float64(f.Rows)*float64(f.Dim) && f.Half == nil {
		w.meta.FeatureKind = SparseFeatures
	}
	if err := w.norm(); err != nil {
		return err
	}
	switch w.meta.FeatureKind {
	case SparseFeatures:
		return w.file(sparseFile, featureKind, w.sparse)
	case HalfFeatures:
		return w.file(denseFile, featureKind, func(out *arrayfile.Writer) error { return dense(w, out, halfArray, Narrow) })
	}
	return w.file(denseFile, featureKind, func(out *arrayfile.Writer) error {
		return dense(w, out, denseArray, func(x float32) float32 { return x })
	})
}

func (f *Features) nonZeros() int64 {
	n := int64(0)
	if f.NonZeros != nil {
		for v := range f.Rows {
			f.NonZeros(v, func(uint32, float32) { n++ })
		}
		return n
	}
	for _, x := range f.Half {
		if x.Float32() != 0 {
			n++
		}
	}
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
	if f.NonZeros != nil {
		f.NonZeros(v, yield)
		return
	}
	if f.Sparse != nil {
		for i := f.Sparse.Offsets[v]; i < f.Sparse.Offsets[v+1]; i++ {
			if f.Sparse.Vals[i] != 0 {
				yield(f.Sparse.Cols[i], f.Sparse.Vals[i])
			}
		}
		return
	}
	if f.Half != nil {
		for c, x := range f.Half[v*f.Dim : (v+1)*f.Dim] {
			if x := x.Float32(); x != 0 {
				yield(uint32(c), x)
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

// narrow rounds feature c of vertex v to bfloat16. A number that is rounded to infinity is an error.
func narrow(x float32, v int, c uint32) (BF16, error) {
	h := Narrow(x)
	if NotFinite(h.Float32()) {
		return 0, invalid("store the features as float32", "feature %d of vertex %d is %v, which is too large for bfloat16", c, v, x)
	}
	return h, nil
}

// scale returns the factor of row v: 1 or, with normalisation, one over the row's sum. A row of
// zeros is not scaled. A negative feature is an error: a sum near 0 would scale the row to huge
// numbers, and a negative sum would change the signs. JoinFeatures has scaled those of kinds.
func (w *writer) scale(v int) (float32, error) {
	if !w.content.Normalize || w.content.Relations != nil {
		return 1, nil
	}
	sum, least := 0.0, float32(0)
	w.content.Features.row(v, func(_ uint32, x float32) { sum, least = sum+float64(x), min(least, x) })
	switch {
	case least < 0:
		return 0, invalid("import without --normalize-features; tables may be scaled with --standardise",
			"vertex %d has the feature %v: rows with negative numbers cannot be divided by their sums", v, least)
	case sum == 0:
		return 1, nil
	}
	return float32(1 / sum), nil
}

// norm computes the root mean square of the norms of the rows as written. It is not called
// for features from Draw. Features in bfloat16 are rounded first, and their non-zeros counted.
func (w *writer) norm() error {
	if w.meta.FeatureKind == HalfFeatures {
		return w.halfNorm()
	}
	f, squares := &w.content.Features, 0.0
	for v := range f.Rows {
		s, err := w.scale(v)
		if err != nil {
			return err
		}
		row := 0.0
		f.row(v, func(_ uint32, x float32) { row += float64(x) * float64(x) })
		squares += float64(row * float64(s) * float64(s))
	}
	w.meta.FeatureNorm = math.Sqrt(squares / float64(max(f.Rows, 1)))
	return nil
}

// halfNorm is norm for features that are written in bfloat16.
func (w *writer) halfNorm() error {
	f, squares := &w.content.Features, 0.0
	w.meta.FeatureNNZ = 0
	for v := range f.Rows {
		s, err := w.scale(v)
		row := 0.0
		f.row(v, func(c uint32, x float32) {
			h, bad := narrow(x*s, v, c)
			err = cmp.Or(err, bad)
			if y := float64(h.Float32()); y != 0 {
				row += float64(y * y)
				w.meta.FeatureNNZ++
			}
		})
		if err != nil {
			return err
		}
		squares += row
	}
	w.meta.FeatureNorm = math.Sqrt(squares / float64(max(f.Rows, 1)))
	return nil
}

// Names of the array in the file of dense features.
const (
	denseArray = "dense"
	halfArray  = "dense_bf16"
)

// blockValues is the approximate number of values that Draw makes at a time.
const blockValues = 1 << 20

// dense writes rows as numbers of an array. halfNorm has checked values for bfloat16.
func dense[T float32 | BF16](w *writer, out *arrayfile.Writer, name string, number func(float32) T) error {
	f := &w.content.Features
	return inBlocks(out, name, f.Rows, func(v int, buf []T) ([]T, error) {
		s, err := w.scale(v)
		at := len(buf)
		buf = append(buf, make([]T, f.Dim)...)
		f.row(v, func(c uint32, x float32) { buf[at+int(c)] = number(x * s) })
		return buf, err
	})
}

// drawn writes rows from Draw without normalisation and counts their non-zeros.
func (w *writer) drawn(out *arrayfile.Writer) error {
	if w.meta.FeatureKind == DenseFeatures {
		return drawBlocks(w, out, denseArray, func(x []float32, _ int) ([]float32, error) { return x, nil })
	}
	var half []BF16
	return drawBlocks(w, out, halfArray, func(x []float32, first int) (_ []BF16, err error) {
		half = half[:0]
		for i := range x {
			h, bad := narrow(x[i], first+i/w.meta.FeatureDim, uint32(i%w.meta.FeatureDim))
			half, x[i], err = append(half, h), h.Float32(), cmp.Or(err, bad)
		}
		return half, err
	})
}

// drawBlocks writes an array in blocks of rows from Draw. convert returns the elements of rows from
// first on, and may change x, whose non-zeros are counted afterwards.
func drawBlocks[T float32 | BF16](w *writer, out *arrayfile.Writer, name string, convert func(x []float32, first int) ([]T, error)) error {
	if err := arrayfile.Begin[T](out, name); err != nil {
		return err
	}
	f := &w.content.Features
	rows := max(blockValues/f.Dim, 1)
	buf := make([]float32, min(rows, f.Rows)*f.Dim)
	for v := 0; v < f.Rows; v += rows {
		part := Features{Rows: min(rows, f.Rows-v), Dim: f.Dim}
		part.Dense = buf[:part.Rows*f.Dim]
		f.Draw(part.Dense, v)
		elements, err := convert(part.Dense, v)
		if err != nil {
			return err
		}
		w.meta.FeatureNNZ += part.nonZeros()
		if err := arrayfile.Append(out, elements); err != nil {
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
func inBlocks[T uint32 | float32 | BF16](out *arrayfile.Writer, name string, rows int, add func(v int, buf []T) ([]T, error)) error {
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
