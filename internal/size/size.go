// Package size multiplies and adds sizes that a user has asked for. A result
// that no number holds is the largest one there is, Most, and so does not fit
// into any memory: it never comes out small or negative.
package size

import "math"

// Most is the size of what cannot be counted.
const Most = math.MaxInt64

// Number is the constraint on counts of bytes, rows and columns. Sizes are 0 or more.
type Number interface{ ~int | ~int64 }

// Product multiplies sizes; that of none is 1.
func Product[T Number](factors ...T) T {
	product := int64(1)
	for _, x := range factors {
		product = times(product, int64(x))
	}
	return T(product)
}

// times is a product of two. A zero makes it zero, whatever the other is.
func times(x, y int64) int64 {
	if x == 0 || y == 0 {
		return 0
	}
	if x > Most/y {
		return Most
	}
	return x * y
}

// Sum adds sizes up.
func Sum[T Number](terms ...T) T {
	sum := int64(0)
	for _, x := range terms {
		if int64(x) > Most-sum {
			return T(Most)
		}
		sum += int64(x)
	}
	return T(sum)
}

// RoundUp is the next multiple of unit.
func RoundUp[T Number](x, unit T) T {
	if int64(x) > Most-int64(unit) {
		return T(Most)
	}
	return (x + unit - 1) / unit * unit
}
