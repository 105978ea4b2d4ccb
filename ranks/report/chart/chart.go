package chart

import (
	"fmt"
	"math"
)

// Chart is lines or bars, and the names of their axes.
type Chart struct {
	Name  string // of its file: loss-epochs
	Title string
	X, Y  string // names of the axes, with units; bars have X alone
	Lines []Line
	Bars  []Bar
	Whole bool // no point is too high for the others: shares, not losses
}

// Line is the course of a group's number.
type Line struct {
	Group  int
	Name   string
	Points []Point // in the order of X
}

// Point is a mean, and the standard deviation of what it is the mean of.
type Point struct{ X, Y, Deviation float64 }

// Bar is a number of a group.
type Bar struct {
	Group            int
	Name             string
	Value, Deviation float64
	Text             string // the same, as it is printed
}

// most is the number of points above which a line is drawn with every k-th of them.
const most = 300

// thin leaves out points between the first and the last.
func thin(points []Point) []Point {
	step := (len(points) + most - 1) / most
	if step < 2 {
		return points
	}
	var few []Point
	for i := 0; i < len(points)-1; i += step {
		few = append(few, points[i])
	}
	return append(few, points[len(points)-1])
}

// span is a part of an axis.
type span struct{ from, to float64 }

func nothing() span { return span{math.Inf(1), math.Inf(-1)} }

func (s *span) add(x float64) {
	x = bounded(x)
	s.from, s.to = min(s.from, x), max(s.to, x)
}

// bounded is x, or a number so large that lengths of spans are numbers too.
func bounded(x float64) float64 { return min(max(x, -1e300), 1e300) }

// wide returns a span in which ticks can be told apart: values that are all but equal get some
// room on either side.
func (s span) wide() span {
	if s.from > s.to {
		return span{0, 1}
	}
	if s.to-s.from <= 1e-9*max(math.Abs(s.from), math.Abs(s.to)) {
		room := math.Abs(s.from) / 10
		if room == 0 {
			room = 0.5
		}
		return span{s.from - room, s.to + room}
	}
	return s
}

// ticks are round numbers of a span, about n of them, and their texts. Steps are 1, 2 or
// 5 times a power of 10.
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

// number returns a tick's text, short where it is very large or very small.
func number(x float64, decimals int) string {
	switch size := math.Abs(x); {
	case size == 0:
		return "0"
	case size >= 1e5, decimals > 5:
		return fmt.Sprintf("%.3g", x)
	}
	return fmt.Sprintf("%.*f", decimals, x)
}
