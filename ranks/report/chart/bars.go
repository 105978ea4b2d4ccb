package chart

// Sizes of a bar.
const (
	rowHeight = 34 // of a bar and the text above it
	barTop    = 17 // of the bar below the top of its row
	barHeight = 11
)

// drawBars draws horizontal bars. The name and the number of a bar are above it, so that they fit
// the screen of a phone.
func (c *Chart) drawBars(s surface) {
	x := span{0, 0}
	for _, b := range c.Bars {
		x.add(b.Value + b.Deviation)
		x.add(b.Value - b.Deviation)
	}
	a := area{surface: s, x: x.wide(), left: right, height: c.height()}
	at, _ := a.x.ticks(6)
	for _, v := range at {
		a.mark(grid, none, "", xy{a.across(v), above}, xy{a.across(v), a.height - below})
	}
	for i, b := range c.Bars {
		a.bar(b, above+float64(i)*rowHeight)
	}
	a.bottom(c.X)
}

// bar draws a bar at height y, with a whisker for its deviation.
func (a area) bar(b Bar, y float64) {
	a.text(label, b.Group, xy{right, y + 12}, start, false, Shorten(b.Name, (boxWidth-2*right)/letter-len(b.Text)-1))
	a.text(label, b.Group, xy{boxWidth - right, y + 12}, end, false, b.Text)
	from, to := a.across(min(0, b.Value)), a.across(max(0, b.Value))
	to = max(to, from+0.5)
	top, bottom := y+barTop, y+barTop+barHeight
	a.mark(bar, b.Group, b.Name+": "+b.Text, xy{from, top}, xy{to, top}, xy{to, bottom}, xy{from, bottom})
	if b.Deviation > 0 {
		l, r, half := a.across(b.Value-b.Deviation), a.across(b.Value+b.Deviation), (top+bottom)/2
		a.mark(whisker, b.Group, "", xy{l, half}, xy{r, half})
		for _, x := range []float64{l, r} {
			a.mark(whisker, b.Group, "", xy{x, half - 4}, xy{x, half + 4})
		}
	}
}
