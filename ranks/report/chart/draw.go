package chart

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// The box of a chart, in units of which a page shows about one a pixel, and the margins
// of what is drawn in it.
const (
	boxWidth  = 400
	boxHeight = 260
	left      = 52
	right     = 12
	above     = 10
	below     = 38
)

// Draw writes the chart as an SVG element.
func (c *Chart) Draw(w io.Writer) error {
	p := &canvas{w: w}
	if len(c.Bars) > 0 {
		c.bars(p)
	} else {
		c.lines(p)
	}
	return p.err
}

func (c *Chart) begin(p *canvas, height int) {
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n", boxWidth, height, c.Title)
}

// lines draws lines, the bands of their deviations below them.
func (c *Chart) lines(p *canvas) {
	x, y := c.extent()
	a := area{x, y, left, boxHeight}
	c.begin(p, boxHeight)
	a.axes(p, c.X, c.Y)
	for _, l := range c.Lines {
		points := thin(l.Points)
		if band := a.band(points); band != "" {
			class, _ := Look(l.Group)
			p.printf(`<path class="band g%d %s" d="%s"/>`+"\n", l.Group, class, band)
		}
	}
	for _, l := range c.Lines {
		a.line(p, l)
	}
	p.printf("</svg>\n")
}

// extent is what the axes must show.
func (c *Chart) extent() (x, y span) {
	x, y = nothing(), nothing()
	for _, l := range c.Lines {
		for _, q := range l.Points {
			x.add(q.X)
			y.add(q.Y - q.Deviation)
			y.add(q.Y + q.Deviation)
		}
	}
	x, y = x.wide(), y.wide()
	room := (y.to - y.from) / 25
	return x, span{y.from - room, y.to + room}
}

// area maps numbers to places in a box.
type area struct {
	x, y         span
	left, height float64
}

func (a area) across(x float64) float64 {
	return a.left + (x-a.x.from)/(a.x.to-a.x.from)*(boxWidth-a.left-right)
}

func (a area) up(y float64) float64 {
	return a.height - below - (y-a.y.from)/(a.y.to-a.y.from)*(a.height-above-below)
}

// axes draws a grid, its numbers and the names of the axes.
func (a area) axes(p *canvas, x, y string) {
	bottom := a.height - below
	at, text := a.y.ticks(5)
	for i, v := range at {
		p.printf(`<path class="grid" d="M%d %.1fH%d"/><text class="tick" x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, a.up(v), boxWidth-right, left-5, a.up(v)+4, text[i])
	}
	a.bottom(p, x)
	p.printf(`<path class="axis" d="M%d %dV%.1f"/>`+"\n", left, above, bottom)
	if y != "" {
		p.printf(`<text class="name" transform="translate(11 %.1f) rotate(-90)" text-anchor="middle">%s</text>`+"\n", (above+bottom)/2, y)
	}
}

// bottom draws the x axis.
func (a area) bottom(p *canvas, name string) {
	bottom := a.height - below
	at, text := a.x.ticks(6)
	for i, v := range at {
		at, anchor := a.across(v), "middle"
		if at > boxWidth-right-letter && len(text[i]) > 3 { // there is no room behind the axis
			anchor = "end"
		}
		p.printf(`<path class="axis" d="M%.1f %.1fv4"/><text class="tick" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n",
			at, bottom, at, bottom+16, anchor, text[i])
	}
	p.printf(`<path class="axis" d="M%.1f %.1fH%d"/>`+"\n", a.left, bottom, boxWidth-right)
	p.printf(`<text class="name" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", (a.left+boxWidth-right)/2, a.height-5, name)
}

// line draws one; a single point is a dot.
func (a area) line(p *canvas, l Line) {
	points := thin(l.Points)
	class, dash := Look(l.Group)
	switch {
	case len(points) == 0:
	case len(points) == 1:
		p.printf(`<circle class="dot g%d %s" cx="%.1f" cy="%.1f" r="3"><title>%s</title></circle>`+"\n",
			l.Group, class, a.across(points[0].X), a.up(points[0].Y), l.Name)
	default:
		p.printf(`<path class="line g%d %s" stroke-dasharray="%s" d="%s"><title>%s</title></path>`+"\n",
			l.Group, class, dash, "M"+a.way(points, 0), l.Name)
	}
}

// way is a path over the points, some deviations away from them.
func (a area) way(points []Point, deviations float64) string {
	var b strings.Builder
	for i, q := range points {
		if i > 0 {
			b.WriteByte('L')
		}
		fmt.Fprintf(&b, "%.1f %.1f", a.across(q.X), a.up(q.Y+deviations*q.Deviation))
	}
	return b.String()
}

// band is the path round the deviations; empty where there are none.
func (a area) band(points []Point) string {
	widest, back := 0.0, make([]Point, len(points))
	for i, q := range points {
		widest = max(widest, q.Deviation)
		back[len(points)-1-i] = q
	}
	if widest == 0 || math.IsNaN(widest) {
		return ""
	}
	return "M" + a.way(points, 1) + "L" + a.way(back, -1) + "Z"
}

// Swatch draws a group's colour and dashes.
func Swatch(w io.Writer, group int) error {
	p := &canvas{w: w}
	class, dash := Look(group)
	p.printf(`<svg viewBox="0 0 30 10" aria-hidden="true"><path class="line %s" stroke-dasharray="%s" d="M1 5H29"/></svg>`, class, dash)
	return p.err
}
