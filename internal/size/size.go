// Package size multiplies and adds user-requested sizes. On overflow the result is the largest
// number, Most, which exceeds any memory: results are never small or negative.
package size

import "math"

// Most is the size in case of overflow.
const Most = math.MaxInt64

// Number is the constraint on counts of bytes, rows and columns. Sizes are 0 or more.
type Number interface{ ~int | ~int64 }

// Product multiplies sizes; the empty product is 1.
func Product[T Number](factors ...T) T {
	product := int64(1)
	for _, x := range factors {
		product = times(product, int64(x))
	}
	return T(product)
}

// times returns the product of two sizes. If one is zero, the product is zero.
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

// RoundUp returns the next multiple of unit.
func RoundUp[T Number](x, unit T) T {
	if int64(x) > Most-int64(unit) {
		return T(Most)
	}
	return (x + unit - 1) / unit * unit
}
