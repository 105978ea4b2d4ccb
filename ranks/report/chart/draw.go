package chart

import (
	"math"
	"slices"
)

// The size of a chart and the margins around its axes. A page shows about one unit per pixel.
const (
	boxWidth  = 400
	boxHeight = 260
	left      = 52
	right     = 12
	above     = 10
	below     = 38
	letter    = 7 // width of a letter in a wide font
)

// height returns the height of the chart without title and legend.
func (c *Chart) height() float64 {
	if len(c.Bars) > 0 {
		return above + float64(len(c.Bars))*rowHeight + below
	}
	return boxHeight
}

func (c *Chart) draw(s surface) {
	if len(c.Bars) > 0 {
		c.drawBars(s)
	} else {
		c.drawLines(s)
	}
}

// drawLines draws lines on top of the bands of their deviations.
func (c *Chart) drawLines(s surface) {
	x, y := c.extent()
	a := area{s, x, y, left, c.height()}
	a.axes(c.X, c.Y)
	for _, l := range c.Lines {
		a.band(l.Group, thin(l.Points))
	}
	for _, l := range c.Lines {
		a.line(l)
	}
}

// extent returns the ranges of the axes. They contain all points up to the height top. Higher
// points are drawn at the edge.
func (c *Chart) extent() (x, y span) {
	x, y = emptySpan(), emptySpan()
	top := c.top()
	for _, l := range c.Lines {
		for _, q := range l.Points {
			x.add(q.X)
			y.add(min(q.Y, top) - min(q.Deviation, top))
			y.add(min(q.Y+q.Deviation, top))
		}
	}
	x, y = x.wide(), y.wide()
	margin := (y.to - y.from) / 25
	return x, span{y.from - margin, y.to + margin}
}

// top returns the maximal height that the y axis must show: three times the larger of the first
// values and the median. It is infinite for a whole chart.
func (c *Chart) top() float64 {
	if c.Whole {
		return math.Inf(1)
	}
	var all []float64
	first := 0.0
	for _, l := range c.Lines {
		for i, q := range l.Points {
			all = append(all, q.Y)
			if i == 0 {
				first = max(first, q.Y)
			}
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return 3 * max(first, all[len(all)/2])
}

// area is the part of a surface within the axes. Its methods map numbers to positions.
type area struct {
	surface
	x, y         span
	left, height float64
}

func (a area) across(x float64) float64 {
	return a.left + (bounded(x)-a.x.from)/(a.x.to-a.x.from)*(boxWidth-a.left-right)
}

func (a area) up(y float64) float64 {
	return a.height - below - (min(max(y, a.y.from), a.y.to)-a.y.from)/(a.y.to-a.y.from)*(a.height-above-below)
}

func (a area) place(x, y float64) xy { return xy{a.across(x), a.up(y)} }

// axes draws the grid, the ticks and the names of the axes.
func (a area) axes(x, y string) {
	bottom := a.height - below
	at, text := a.y.ticks(5)
	for i, v := range at {
		a.mark(grid, none, "", xy{a.left, a.up(v)}, xy{boxWidth - right, a.up(v)})
		a.text(tick, none, xy{a.left - 5, a.up(v) + 4}, end, false, text[i])
	}
	a.bottom(x)
	a.mark(axis, none, "", xy{a.left, above}, xy{a.left, bottom})
	a.text(name, none, xy{12, (above + bottom) / 2}, middle, true, y)
}

// bottom draws the x axis.
func (a area) bottom(x string) {
	bottom := a.height - below
	at, text := a.x.ticks(6)
	for i, v := range at {
		at, where := a.across(v), middle
		if at > boxWidth-right-letter && len(text[i]) > 3 { // a centred text would not fit
			where = end
		}
		a.mark(axis, none, "", xy{at, bottom}, xy{at, bottom + 4})
		a.text(tick, none, xy{at, bottom + 16}, where, false, text[i])
	}
	a.mark(axis, none, "", xy{a.left, bottom}, xy{boxWidth - right, bottom})
	a.text(name, none, xy{(a.left + boxWidth - right) / 2, a.height - 5}, middle, false, x)
}

// line draws a line, or a square for a single point.
func (a area) line(l Line) {
	var places []xy
	for _, q := range thin(l.Points) {
		places = append(places, a.place(q.X, q.Y))
	}
	switch len(places) {
	case 0:
	case 1:
		x, y := places[0].x, places[0].y
		a.mark(bar, l.Group, l.Name, xy{x - 3, y - 3}, xy{x + 3, y - 3}, xy{x + 3, y + 3}, xy{x - 3, y + 3})
	default:
		a.mark(line, l.Group, l.Name, places...)
	}
}

// band draws the area between mean - deviation and mean + deviation.
func (a area) band(group int, points []Point) {
	widest, places := 0.0, make([]xy, 2*len(points))
	for i, q := range points {
		widest = max(widest, q.Deviation)
		places[i], places[len(places)-1-i] = a.place(q.X, q.Y+q.Deviation), a.place(q.X, q.Y-q.Deviation)
	}
	if widest > 0 && !math.IsInf(widest, 0) {
		a.mark(band, group, "", places...)
	}
}
