package importers

import (
	"fmt"
	"strings"

	"siafu/graph"
	"siafu/internal/npy"
)

type ndarray struct {
	*npy.Array
	input
	list []string // the elements, if the file has a list of texts
}

type zipArrays struct {
	*npy.Zip
	input
}

func (z zipArrays) get(name string) ndarray {
	return ndarray{Array: must(z.Get(name)), input: z.element(name)}
}

// flat returns the array, which must have one dimension.
func (a ndarray) flat() ndarray {
	a.require(len(a.Shape) == 1, "", "shape is %v, expected one dimension", a.Shape)
	return a
}

// rows returns the number of rows of features [rows x columns].
func (a ndarray) rows() int64 {
	a.require(len(a.Shape) == 2, "", "features have shape %v, expected [vertices columns]", a.Shape)
	checkVertices(a.input, int64(a.Shape[0]))
	return int64(a.Shape[0])
}

// dense returns the features of an array [n x dim]: in place if they are float32 rows, else
// converted, in mapped memory.
func (a ndarray) dense(k *resources, n int64) graph.Features {
	a.require(len(a.Shape) == 2 && int64(a.Shape[0]) == n, "", "features have shape %v, expected %d rows", a.Shape, n)
	// Rows without columns have no bytes that prove their number.
	a.require(a.Shape[1] > 0, "", "features have shape %v, expected one column or more", a.Shape)
	f := graph.Features{Rows: int(n), Dim: a.Shape[1], Dense: a.float32s(k)}
	checkFinite(a.input, f.Dense, f.Dim)
	return f
}

// float32s returns the elements by rows: in place if they are float32 rows, else converted, in
// mapped memory.
func (a ndarray) float32s(k *resources) []float32 {
	if a.Type == "<f4" && !a.Fortran {
		return must(a.Float32s())
	}
	values := reserve[float32](k, a.input, a.Len())
	check(a.CopyFloat32s(values))
	return values
}

// integers returns the whole numbers of an array of the given shape; dimension -1 means any.
func (a ndarray) integers(shape ...int) []int64 {
	ok := len(a.Shape) == len(shape)
	for i := 0; ok && i < len(shape); i++ {
		ok = shape[i] < 0 || shape[i] == a.Shape[i]
	}
	a.require(ok, "", "shape is %v, expected %s", a.Shape, strings.ReplaceAll(fmt.Sprint(shape), "-1", "any"))
	return must(a.Int64s())
}

// labels returns the labels of an array [n] or [n x 1].
func (a ndarray) labels(n int64) []int32 {
	shape := []int{int(n)}
	if len(a.Shape) == 2 {
		a.require(a.Shape[1] == 1, severalLabels, "labels have shape %v", a.Shape)
		shape = append(shape, 1)
	}
	return checkLabels(a.input, a.integers(shape...))
}

// sets returns the split values of an array [n]: reddit's node_types have the values of a
// dataset.
func (a ndarray) sets(n int64) []uint8 {
	values, split := a.integers(int(n)), make([]uint8, n)
	checkSplit(a.input, values)
	for v, s := range values {
		split[v] = uint8(s)
	}
	return split
}

// edges returns the pairs of an array [m x 2].
func (a ndarray) edges(n int64) graph.EdgeSource {
	a.require(len(a.Shape) == 2 && a.Shape[1] == 2, "", "shape is %v, expected [edges 2]", a.Shape)
	pairs := must(a.Uint32s())
	checkPairs(a.input, pairs, n)
	return graph.EdgePairs(pairs)
}
