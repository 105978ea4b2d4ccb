package chart

import (
	"fmt"
	"image/color"
	"strings"
)

// role is the function of a mark or a text in a chart. It selects the style in a page and the pen
// of the raster.
type role string

const (
	grid    role = "grid"
	axis    role = "axis"
	line    role = "line"
	band    role = "band"
	bar     role = "bar"
	whisker role = "whisker"
	tick    role = "tick"
	name    role = "name"
	label   role = "label"
	title   role = "title"
)

// none is the group of marks and texts outside any group.
const none = -1

// xy is a position on a surface. The origin is the upper left corner, and y points down.
type xy struct{ x, y float64 }

// anchor is the part of a text that is at its position.
type anchor string

const (
	start  anchor = "start"
	middle anchor = "middle"
	end    anchor = "end"
)

// surface is a drawing target.
type surface interface {
	// mark draws a line through places, or the enclosed area if the role is an area. title is a
	// tooltip.
	mark(r role, group int, title string, places ...xy)
	// text writes a line of text, upwards if turned is set.
	text(r role, group int, at xy, a anchor, turned bool, s string)
}

// isArea reports whether marks of a role are filled.
func (r role) isArea() bool { return r == band || r == bar }

// palette has the colours of groups, on white and on black. Further groups reuse the colours with
// other dashes.
var palette = []struct{ light, dark color.NRGBA }{
	{hex(0x0072b2), hex(0x4aa3df)}, {hex(0xd55e00), hex(0xff8a3d)}, {hex(0x009e73), hex(0x2fc79c)}, {hex(0xcc79a7), hex(0xe39ac2)},
	{hex(0xe69f00), hex(0xf2b632)}, {hex(0x56b4e9), hex(0x8fd0f7)}, {hex(0x6b6b6b), hex(0xb5b5b5)},
}

// ink has the colours of elements outside any group, on white and on black.
var ink = []struct {
	name        string
	light, dark color.NRGBA
}{
	{"ink", hex(0x1c1e21), hex(0xe6e8eb)}, {"faint", hex(0x5d636b), hex(0xa3a9b2)}, {"line", hex(0xd9dce1), hex(0x3a3f47)},
}

func hex(rgb uint32) color.NRGBA {
	return color.NRGBA{uint8(rgb >> 16), uint8(rgb >> 8), uint8(rgb), 0xff}
}

// dashes are the lengths of dashes and gaps of lines, in pixels.
var dashes = [][]float64{nil, {6, 3}, {2, 3}, {8, 3, 2, 3}}

func dashesOf(group int) []float64 { return dashes[group/len(palette)%len(dashes)] }

// colourSheet returns a style sheet that sets the variables of the colours, for a light or a dark page.
func colourSheet(dark bool) string {
	var b strings.Builder
	b.WriteString(":root {")
	write := func(name string, l, d color.NRGBA) {
		if dark {
			l = d
		}
		fmt.Fprintf(&b, " --%s: #%02x%02x%02x;", name, l.R, l.G, l.B)
	}
	for _, c := range ink {
		write(c.name, c.light, c.dark)
	}
	for k, c := range palette {
		write(fmt.Sprintf("c%d", k), c.light, c.dark)
	}
	b.WriteString(" }\n")
	return b.String()
}

// groupRules returns the style rules of charts, which use the variables of colourSheet.
func groupRules() string {
	var b strings.Builder
	for k := range palette {
		fmt.Fprintf(&b, ".c%d { --c: var(--c%d) }\n", k, k)
	}
	return b.String() + rules
}

const rules = `svg text { fill: var(--ink); font-family: system-ui, sans-serif; font-size: 12px; }
svg .tick { fill: var(--faint); font-size: 11px; }
svg .name { fill: var(--faint); }
svg .title { font-weight: 600; font-size: 13px; }
svg path { fill: none; }
svg .grid { stroke: var(--line); stroke-width: 0.7; }
svg .axis { stroke: var(--faint); }
svg .line { stroke: var(--c); stroke-width: 1.8; stroke-linejoin: round; }
svg .band { fill: var(--c); fill-opacity: 0.18; }
svg .bar { fill: var(--c); }
svg .whisker { stroke: var(--ink); stroke-width: 1.4; }
`
