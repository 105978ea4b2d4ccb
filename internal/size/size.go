// Package size multiplies and adds user-requested sizes. On overflow the result is the largest
// number, Most, which exceeds any memory: results are never small or negative.
package size

import (
	"math"
	"strconv"
	"strings"
)

// Most is the size in case of overflow.
const Most = math.MaxInt64

// Count is the constraint on counts of bytes, rows and columns. Sizes are 0 or more.
type Count interface{ ~int | ~int64 }

// Product multiplies sizes; the empty product is 1.
func Product[T Count](factors ...T) T {
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
func Sum[T Count](terms ...T) T {
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
func RoundUp[T Count](x, unit T) T {
	if int64(x) > Most-int64(unit) {
		return T(Most)
	}
	return (x + unit - 1) / unit * unit
}

// Number splits text into its leading number, which must be positive, and the unit after it.
func Number(text string) (number float64, unit string, ok bool) {
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(text)
	}
	v, err := strconv.ParseFloat(text[:end], 64)
	return v, strings.ToLower(strings.TrimSpace(text[end:])), err == nil && v > 0 && !math.IsInf(v, 0)
}

// Parse parses a number of bytes such as 8GB, 380M or 1.5GiB. A letter alone is a power of 1000, as with
// the B, and Ki to Ti are powers of 1024.
func Parse(text string) (bytes int64, ok bool) {
	v, unit, ok := Number(text)
	scale, known := map[string]float64{
		"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12,
		"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40,
	}[strings.TrimSuffix(unit, "b")]
	if !ok || !known || v*scale >= 1<<62 {
		return 0, false
	}
	return int64(v * scale), true
}
