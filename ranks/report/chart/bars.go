package chart

// Of a bar: its height with the line of text above it, and where it lies in that.
const (
	rowHeight = 34
	barTop    = 17
	barHeight = 11
	letter    = 7 // width of one, in a font that is wider than most
)

// bars draws bars from left to right, each below its name and its number, so that a
// phone has room for both.
func (c *Chart) bars(p *canvas) {
	x := span{0, 0}
	for _, b := range c.Bars {
		x.add(b.Value + b.Deviation)
		x.add(b.Value - b.Deviation)
	}
	height := above + len(c.Bars)*rowHeight + below
	a := area{x: x.wide(), left: right, height: float64(height)}
	c.begin(p, height)
	at, _ := a.x.ticks(6)
	for _, v := range at {
		p.printf(`<path class="grid" d="M%.1f %dV%d"/>`+"\n", a.across(v), above, height-below)
	}
	for i, b := range c.Bars {
		a.bar(p, b, above+i*rowHeight)
	}
	a.bottom(p, c.X)
	p.printf("</svg>\n")
}

// bar draws one, and a whisker of its deviation.
func (a area) bar(p *canvas, b Bar, y int) {
	class, _ := Look(b.Group)
	from, to := a.across(min(0, b.Value)), a.across(max(0, b.Value))
	p.printf(`<g class="g%d %s"><title>%s: %s</title>`, b.Group, class, b.Name, b.Text)
	p.printf(`<text class="label" x="%d" y="%d">%s</text><text class="value" x="%d" y="%d" text-anchor="end">%s</text>`,
		right, y+12, short(b.Name, (boxWidth-2*right)/letter-len(b.Text)-1), boxWidth-right, y+12, b.Text)
	p.printf(`<rect class="bar" x="%.1f" y="%d" width="%.1f" height="%d"/>`, from, y+barTop, max(to-from, 0.5), barHeight)
	if b.Deviation > 0 {
		middle := y + barTop + barHeight/2
		l, r := a.across(b.Value-b.Deviation), a.across(b.Value+b.Deviation)
		p.printf(`<path class="whisker" d="M%.1f %dH%.1fM%.1f %dv8M%.1f %dv8"/>`, l, middle, r, l, middle-4, r, middle-4)
	}
	p.printf("</g>\n")
}
