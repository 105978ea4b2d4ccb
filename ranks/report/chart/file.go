package chart

import (
	"fmt"
	"image/color"
	"io"
	"strings"
)

// Sizes of a chart in its own file.
const (
	titleHeight = 26
	keyHeight   = 17 // of each line of the legend
)

// whole returns the height of the chart with its title and its legend.
func (c *Chart) whole() float64 {
	return titleHeight + c.height() + float64(len(c.Lines))*keyHeight + above
}

// drawWhole draws the title, the chart and a legend of its lines. Bars need no legend.
func (c *Chart) drawWhole(s surface) {
	s.text(title, none, xy{right, 19}, start, false, c.Title)
	c.draw(moved{s, titleHeight})
	y := titleHeight + c.height() + keyHeight/2
	for _, l := range c.Lines {
		s.mark(line, l.Group, "", xy{left, y}, xy{left + 28, y})
		s.text(label, none, xy{left + 36, y + 4}, start, false, Shorten(l.Name, (boxWidth-left-36-right)/letter))
		y += keyHeight
	}
}

// moved is a surface that adds by to every y coordinate.
type moved struct {
	surface
	by float64
}

func (m moved) mark(r role, group int, title string, places ...xy) {
	for i := range places {
		places[i].y += m.by
	}
	m.surface.mark(r, group, title, places...)
}

func (m moved) text(r role, group int, at xy, a anchor, turned bool, s string) {
	m.surface.text(r, group, xy{at.x, at.y + m.by}, a, turned, s)
}

// WriteSVG writes the chart as an SVG file.
func (c *Chart) WriteSVG(w io.Writer) error {
	s := svg{&canvas{w: w}}
	s.begin(c.Title, boxWidth, c.whole())
	s.raw("<style>\n" + plainRules() + "</style>\n")
	s.printf(`<rect width="100%%" height="100%%" fill="white"/>` + "\n")
	c.drawWhole(s)
	s.printf("</svg>\n")
	return s.err
}

// WritePNG writes the chart as a PNG file.
func (c *Chart) WritePNG(w io.Writer) error {
	s, err := newRaster(boxWidth, c.whole())
	if err != nil {
		return err
	}
	c.drawWhole(s)
	return s.EncodePNG(w)
}

// plainRules returns the rules with colours in place of variables, because most viewers of SVG
// files do not support variables.
func plainRules() string {
	text := func(c color.NRGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }
	var b strings.Builder
	for rule := range strings.Lines(rules) {
		for _, c := range ink {
			rule = strings.ReplaceAll(rule, "var(--"+c.name+")", text(c.light))
		}
		selector, body, _ := strings.Cut(rule, " {")
		for k, c := range palette {
			if strings.Contains(rule, "var(--c)") {
				fmt.Fprintf(&b, "%s.c%d {%s", selector, k, strings.ReplaceAll(body, "var(--c)", text(c.light)))
			}
		}
		if !strings.Contains(rule, "var(--c)") {
			b.WriteString(rule)
		}
	}
	return b.String()
}
