package chart

import (
	"cmp"
	"fmt"
	"math"
)

// Chart is a chart of lines or of bars.
type Chart struct {
	Name  string // name of the file without extension: loss-epochs
	Title string
	X, Y  string // names of the axes, with units; bars have only X
	Lines []Line
	Bars  []Bar
	Whole bool // the y axis must show all points: for fractions, not for losses
}

// Line is the curve of a group's number.
type Line struct {
	Group  int
	Name   string
	Points []Point // in the order of X
}

// Point is a mean with its standard deviation.
type Point struct{ X, Y, Deviation float64 }

// Bar is a number of a group.
type Bar struct {
	Group            int
	Name             string
	Value, Deviation float64
	Text             string // the formatted value
}

// maxPoints is the maximal number of drawn points of a line, without the last one.
const maxPoints = 300

// thin returns every k-th point, and the last one.
func thin(points []Point) []Point {
	step := (len(points) + maxPoints - 1) / maxPoints
	if step < 2 {
		return points
	}
	var few []Point
	for i := 0; i < len(points)-1; i += step {
		few = append(few, points[i])
	}
	return append(few, points[len(points)-1])
}

// span is a range of an axis.
type span struct{ from, to float64 }

func emptySpan() span { return span{math.Inf(1), math.Inf(-1)} }

func (s *span) add(x float64) {
	x = bounded(x)
	s.from, s.to = min(s.from, x), max(s.to, x)
}

// bounded limits x so that lengths of spans are finite.
func bounded(x float64) float64 { return min(max(x, -1e300), 1e300) }

// wide returns a span that contains s and has distinct ticks. It extends a very short span.
func (s span) wide() span {
	if s.from > s.to {
		return span{0, 1}
	}
	if s.to-s.from <= 1e-9*max(math.Abs(s.from), math.Abs(s.to)) {
		margin := cmp.Or(math.Abs(s.from)/10, 0.5)
		return span{s.from - margin, s.to + margin}
	}
	return s
}

// ticks returns about n round numbers of a span, and their texts. The step is 1, 2 or 5 times a
// power of 10.
func (s span) ticks(n int) (at []float64, text []string) {
	raw := (s.to - s.from) / float64(n)
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * power
	for _, k := range []float64{5, 2, 1} {
		if k*power >= raw {
			step = k * power
		}
	}
	decimals := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	for k := math.Ceil(s.from/step - 1e-9); k*step <= s.to+step*1e-9; k++ {
		at, text = append(at, k*step+0), append(text, number(k*step+0, decimals)) // + 0: no -0
	}
	return at, text
}

// number returns the text of a tick, with an exponent if the number is very large or very small.
func number(x float64, decimals int) string {
	switch size := math.Abs(x); {
	case size == 0:
		return "0"
	case size >= 1e5, decimals > 5:
		return fmt.Sprintf("%.3g", x)
	}
	return fmt.Sprintf("%.*f", decimals, x)
}
