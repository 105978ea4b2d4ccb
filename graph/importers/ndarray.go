package importers

import (
	"fmt"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/npy"
)

// ndarray is an array of a file, or the error of reading it, which access to its elements
// returns. Faults name op and path.
type ndarray struct {
	*npy.Array
	op, path string
	err      error
}

// arrayIn returns an array of an npz file at path.
func arrayIn(op, path string, z *npy.Zip, name string) ndarray {
	a, err := z.Get(name)
	return ndarray{a, op, path + "[" + name + "]", err}
}

// arrayAt maps an npy file until the keeper's release.
func arrayAt(op, path string, k *keeper) ndarray {
	a, done, err := npy.Map(path)
	if err == nil {
		k.closers = append(k.closers, done)
	}
	return ndarray{a, op, path, err}
}

// bad returns the fault of an invalid array.
func (a ndarray) bad(format string, args ...any) *fault.Error {
	return fault.New(fault.Data, a.op, a.path, format, args...)
}

// elements returns the elements of an array, read by a function such as (*npy.Array).Int64s.
func elements[T any](a ndarray, read func(*npy.Array) ([]T, error)) ([]T, error) {
	if a.err != nil {
		return nil, a.err
	}
	return read(a.Array)
}

// flat returns the array if it has one dimension.
func (a ndarray) flat() ndarray {
	if a.err == nil && len(a.Shape) != 1 {
		a.err = a.bad("shape is %v, expected one dimension", a.Shape)
	}
	return a
}

// dense returns the features of an array [n x dim]: in place if they are float32 rows, else
// converted, in mapped memory.
func (a ndarray) dense(k *keeper, n int64) (graph.Features, error) {
	f := graph.Features{Rows: int(n)}
	switch {
	case a.err != nil:
		return f, a.err
	case len(a.Shape) != 2 || int64(a.Shape[0]) != n:
		return f, a.bad("features have shape %v, expected %d rows", a.Shape, n)
	case a.Shape[1] < 1:
		// Rows without columns have no bytes that prove their number.
		return f, a.bad("features have shape %v, expected one column or more", a.Shape)
	}
	f.Dim = a.Shape[1]
	var err error
	if f.Dense, err = a.float32s(k); err != nil {
		return f, err
	}
	return f, checkFinite(a.op, a.path, f.Dense, f.Dim)
}

// float32s returns the elements by rows: in place if they are float32 rows, else converted, in
// mapped memory.
func (a ndarray) float32s(k *keeper) ([]float32, error) {
	if a.Type == "<f4" && !a.Fortran {
		return a.Float32s()
	}
	values, err := reserve[float32](k, a.op, a.path, a.Len())
	if err == nil {
		err = a.CopyFloat32s(values)
	}
	return values, err
}

// integers returns the whole numbers of an array of the given shape; dimension -1 means any.
func (a ndarray) integers(shape ...int) ([]int64, error) {
	if a.err != nil {
		return nil, a.err
	}
	ok := len(a.Shape) == len(shape)
	for i := 0; ok && i < len(shape); i++ {
		ok = shape[i] < 0 || shape[i] == a.Shape[i]
	}
	if !ok {
		return nil, a.bad("shape is %v, expected %s", a.Shape, strings.ReplaceAll(fmt.Sprint(shape), "-1", "any"))
	}
	return a.Int64s()
}

// labels returns the labels of an array [n] or [n x 1].
func (a ndarray) labels(n int64) ([]int32, error) {
	shape := []int{int(n)}
	if a.err == nil && len(a.Shape) == 2 {
		if a.Shape[1] != 1 {
			return nil, multiLabel(a.op, a.path, "labels have shape %v", a.Shape)
		}
		shape = append(shape, 1)
	}
	l, err := a.integers(shape...)
	if err != nil {
		return nil, err
	}
	return checkLabels(a.op, a.path, l)
}

// sets returns the split values of an array [n]: reddit's node_types have the values of a
// dataset.
func (a ndarray) sets(n int64) ([]uint8, error) {
	values, err := a.integers(int(n))
	if err != nil {
		return nil, err
	}
	split := make([]uint8, n)
	for v, s := range values {
		if s < graph.SplitNone || s > graph.SplitTest {
			return nil, badSplit(a.op, a.path, v, s)
		}
		split[v] = uint8(s)
	}
	return split, nil
}

// edges returns the pairs of an array [m x 2].
func (a ndarray) edges(n int64) (graph.EdgeSource, error) {
	if a.err == nil && (len(a.Shape) != 2 || a.Shape[1] != 2) {
		return nil, a.bad("shape is %v, expected [edges 2]", a.Shape)
	}
	pairs, err := elements(a, (*npy.Array).Uint32s)
	if err != nil {
		return nil, err
	}
	return graph.EdgePairs(pairs), checkPairs(a.op, a.path, pairs, n)
}
