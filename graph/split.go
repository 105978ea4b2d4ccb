package graph

import (
	"math"
	"strconv"
	"strings"
)

// ParsePercentages reads three percentages in the form 60/20/20: training, validation and test
// set. Each must be above 0, and the sum must be 100.
func ParsePercentages(text string) (of [3]float64, ok bool) {
	parts := strings.Split(text, "/")
	if len(parts) != len(of) {
		return of, false
	}
	sum := 0.0
	for i, part := range parts {
		x, err := strconv.ParseFloat(part, 64)
		if err != nil || !(x > 0) {
			return of, false
		}
		of[i], sum = x, sum+x
	}
	return of, math.Abs(sum-100) <= 1e-9
}
