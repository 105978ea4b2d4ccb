package world

import (
	"slices"
	"unsafe"
)

// number is an element type of the reductions below.
type number interface{ float32 | float64 | int64 }

// shortBytes is the maximal length of a vector that is reduced in one step: every rank
// receives all vectors. Above it a reduce-scatter and an allgather send fewer bytes. The bits
// of the result are the same.
const shortBytes = 4 << 10

// SumFloat32s replaces x on every rank by the sum of all ranks' x. It adds in ascending order of
// ranks, so the bits are the same on every rank and in every world. All ranks must pass the same
// length. Collective.
func SumFloat32s(c Comm, x []float32) error { return reduce(c, x, addTo[float32]) }

// SumFloat64s sums like SumFloat32s. Collective.
func SumFloat64s(c Comm, x []float64) error { return reduce(c, x, addTo[float64]) }

// SumInt64s sums like SumFloat32s, and wraps at overflow. Collective.
func SumInt64s(c Comm, x []int64) error { return reduce(c, x, addTo[int64]) }

// MaxFloat64s replaces x on every rank by the element-wise maximum of all ranks' x. All ranks must
// pass the same length. Collective.
func MaxFloat64s(c Comm, x []float64) error {
	return reduce(c, x, func(dst, src []float64) {
		for i, v := range src {
			dst[i] = max(dst[i], v)
		}
	})
}

// MinInt64s replaces x on every rank by the element-wise minimum of all ranks' x. All ranks must
// pass the same length. Collective.
func MinInt64s(c Comm, x []int64) error {
	return reduce(c, x, func(dst, src []int64) {
		for i, v := range src {
			dst[i] = min(dst[i], v)
		}
	})
}

func addTo[T number](dst, src []T) {
	for i, v := range src {
		dst[i] += v
	}
}

// reduce folds all ranks' x into x with the function into, in ascending order of ranks.
//
// Design note: MPI_Allreduce would be a single call, but the order of its additions depends on the
// library and on the number of ranks.
func reduce[T number](c Comm, x []T, into func(dst, src []T)) error {
	switch {
	case c.Size() == 1 || len(x) == 0:
		return nil
	case len(bytesOf(x)) <= shortBytes:
		return reduceShort(c, x, into)
	}
	return reduceLong(c, x, into)
}

// reduceShort sends all vectors to all ranks, and folds them on each.
func reduceShort[T number](c Comm, x []T, into func(dst, src []T)) error {
	all := make([]T, c.Size()*len(x))
	if err := c.Allgatherv(bytesOf(x), bytesOf(all), slices.Repeat([]int{len(bytesOf(x))}, c.Size())); err != nil {
		return err
	}
	fold(x, all, c.Size(), into)
	return nil
}

// reduceLong divides the vector into one part per rank. A rank folds its part of all vectors,
// and then all ranks receive all parts.
func reduceLong[T number](c Comm, x []T, into func(dst, src []T)) error {
	size, me := c.Size(), c.Rank()
	width := int(unsafe.Sizeof(x[0]))
	shares := make([]int, size) // bytes of each rank's share
	for q := range shares {
		shares[q] = (shareStart(len(x), q+1, size) - shareStart(len(x), q, size)) * width
	}
	mine := x[shareStart(len(x), me, size):shareStart(len(x), me+1, size)]
	theirs := make([]T, size*len(mine)) // this rank's part of each rank's vector
	req, err := c.Ialltoallv(bytesOf(x), shares, bytesOf(theirs), slices.Repeat([]int{shares[me]}, size))
	if err != nil {
		return err
	}
	if err := req.Wait(); err != nil {
		return err
	}
	sum := make([]T, len(mine))
	fold(sum, theirs, size, into)
	return c.Allgatherv(bytesOf(sum), bytesOf(x), shares)
}

// fold sets dst to the fold of size consecutive vectors in all. It begins with the first
// vector, not with zero: -0 must stay -0.
func fold[T number](dst, all []T, size int, into func(dst, src []T)) {
	n := len(dst)
	copy(dst, all[:n])
	for q := 1; q < size; q++ {
		into(dst, all[q*n:(q+1)*n])
	}
}

// shareStart returns the index of the first of n elements in part q of parts. The first n%parts
// parts have one element more than the others.
func shareStart(n, q, parts int) int { return q*(n/parts) + min(q, n%parts) }

// bytesOf returns the bytes of x, without a copy. All ranks of a world must have the same byte
// order.
func bytesOf[T number](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(x[0])))
}
