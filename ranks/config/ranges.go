package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"siafu/internal/fault"
)

// The tag range of an option has the valid numbers: "-1|0..<1" means -1, or at least 0 and below
// 1. A bound after < or > is excluded; without an upper bound all finite numbers are valid.

// checkRanges checks the options with a range.
func (c *Config) checkRanges() error {
	for f, v := range c.Options() {
		text, ok := f.Tag.Lookup("range")
		if !ok {
			continue
		}
		var x float64
		if v.CanInt() {
			x = float64(v.Int())
		} else {
			x = v.Float()
		}
		if !inRange(text, x) {
			return fault.New(fault.Usage, "train", "", "%s", Spell(f.Tag.Get("toml"), fmt.Sprint(v))).
				Then("it must be %s", describeRange(text))
		}
	}
	return nil
}

// inRange reports whether x is in a range; false for NaN.
func inRange(text string, x float64) bool {
	for part := range strings.SplitSeq(text, "|") {
		if b := parseBounds(part); (x > b.low || x == b.low && !b.above) && (x < b.high || x == b.high && !b.below && !math.IsInf(x, 1)) {
			return true
		}
	}
	return false
}

func describeRange(text string) string {
	var list []string
	for part := range strings.SplitSeq(text, "|") {
		b := parseBounds(part)
		low, high := number(b.low), number(b.high)
		switch {
		case b.low == b.high:
			list = append(list, low)
		case math.IsInf(b.high, 1) && b.above:
			list = append(list, "above "+low)
		case math.IsInf(b.high, 1):
			list = append(list, low+" or more")
		case b.above:
			list = append(list, "above "+low+" and at most "+high)
		case b.below:
			list = append(list, "at least "+low+" and below "+high)
		default:
			list = append(list, "from "+low+" to "+high)
		}
	}
	return strings.Join(list, ", or ")
}

// bounds are the ends of a range. above and below exclude them.
type bounds struct {
	low, high    float64
	above, below bool
}

func parseBounds(text string) bounds {
	low, high, isInterval := strings.Cut(text, "..")
	var b bounds
	low, b.above = strings.CutPrefix(low, ">")
	high, b.below = strings.CutPrefix(high, "<")
	b.low = parseBound(low)
	switch {
	case !isInterval:
		b.high = b.low
	case high == "":
		b.high = math.Inf(1)
	default:
		b.high = parseBound(high)
	}
	return b
}

func parseBound(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic("config: a tag has an invalid range")
	}
	return x
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
