package chart

import (
	"fmt"
	"io"
	"strings"
)

// svg is a surface that writes SVG elements.
type svg struct{ *canvas }

func (s svg) begin(label string, width, height float64) {
	s.printf(`<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 %g %g" role="img" aria-label="%s">`+"\n",
		width, height, label)
}

func (s svg) mark(r role, group int, title string, places ...xy) {
	var d strings.Builder
	for i, p := range places {
		fmt.Fprintf(&d, "%c%.1f %.1f", "ML"[min(i, 1)], p.x, p.y)
	}
	if r.isArea() {
		d.WriteByte('Z')
	}
	s.printf(`<path class="%s" d="%s"`, string(r)+classes(group), d.String())
	if r == line && dashesOf(group) != nil {
		s.printf(` stroke-dasharray="%s"`, strings.Trim(fmt.Sprint(dashesOf(group)), "[]"))
	}
	if title == "" {
		s.printf("/>\n")
		return
	}
	s.printf("><title>%s</title></path>\n", title)
}

func (s svg) text(r role, group int, at xy, a anchor, turned bool, text string) {
	place := fmt.Sprintf(`x="%.1f" y="%.1f"`, at.x, at.y)
	if turned {
		place = fmt.Sprintf(`transform="translate(%.1f %.1f) rotate(-90)"`, at.x, at.y)
	}
	s.printf(`<text class="%s" text-anchor="%s" `+place+`>%s</text>`+"\n", string(r)+classes(group), string(a), text)
}

// classes returns the class for scripts and the class for the colour of a group.
func classes(group int) string {
	if group == none {
		return ""
	}
	return fmt.Sprintf(" g%d c%d", group, group%len(palette))
}

// Draw writes the chart as an SVG element for a page.
func (c *Chart) Draw(w io.Writer) error {
	s := svg{&canvas{w: w}}
	s.begin(c.Title, boxWidth, c.height())
	c.draw(s)
	s.printf("</svg>\n")
	return s.err
}

// swatch draws a short line in a group's colour and dashes.
func swatch(w io.Writer, group int) error {
	s := svg{&canvas{w: w}}
	s.printf(`<svg viewBox="0 0 30 10" aria-hidden="true">`)
	s.mark(line, group, "", xy{1, 5}, xy{29, 5})
	s.printf(`</svg>`)
	return s.err
}
