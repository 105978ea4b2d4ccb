package importers

import (
	"fmt"
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/npy"
)

// ndarray is an array of a file, or the error for which there is none: whoever asks
// for its elements gets that. op and path are what faults about it name.
type ndarray struct {
	*npy.Array
	op, path string
	err      error
}

// arrayIn is an array of an npz file at path.
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

// bad is the fault of an array that is not what it should be.
func (a ndarray) bad(format string, args ...any) *fault.Error {
	return fault.New(fault.Data, a.op, a.path, format, args...)
}

// elements are those of an array as read gives them, such as (*npy.Array).Int64s.
func elements[T any](a ndarray, read func(*npy.Array) ([]T, error)) ([]T, error) {
	if a.err != nil {
		return nil, a.err
	}
	return read(a.Array)
}

// flat is the array where it has one dimension.
func (a ndarray) flat() ndarray {
	if a.err == nil && len(a.Shape) != 1 {
		a.err = a.bad("shape is %v, expected one dimension", a.Shape)
	}
	return a
}

// dense is the features that an array [n x dim] holds. They stay where they
// are when they are float32 in rows already, and are converted into mapped
// memory otherwise.
func (a ndarray) dense(k *keeper, n int64) (graph.Features, error) {
	f := graph.Features{Rows: int(n)}
	switch {
	case a.err != nil:
		return f, a.err
	case len(a.Shape) != 2 || int64(a.Shape[0]) != n:
		return f, a.bad("features have shape %v, expected %d rows", a.Shape, n)
	case a.Shape[1] < 1:
		// Rows without columns have no bytes that would prove them.
		return f, a.bad("features have shape %v, expected one column or more", a.Shape)
	}
	f.Dim = a.Shape[1]
	var err error
	if f.Dense, err = a.float32s(k); err != nil {
		return f, err
	}
	return f, checkFinite(a.op, a.path, f.Dense, f.Dim)
}

// float32s are the elements in rows: where they are when they are float32 in rows already,
// and converted into mapped memory otherwise.
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

// integers are the whole numbers of an array of the given shape; a dimension of
// -1 stands for any.
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

// labels are the labels of an array [n], or [n x 1].
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

// sets are an array [n] of the numbers that stand for the sets of a split: those
// of reddit's node_types are the same as a dataset's.
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

// edges are the pairs of an array [m x 2].
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
