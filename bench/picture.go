package bench

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"siafu/graph/fault"
	"siafu/ranks/trace"
)

// Sizes of the picture of a timeline, in pixels.
const (
	pictureWidth = 1100
	laneHeight   = 26
	laneGap      = 8
	labelWidth   = 130
	legendHeight = 40
)

// colours of tasks: forward light, backward dark, communication red.
var colours = map[string]string{
	"GA": "#7fb8e6", "AV": "#9fd89a", "SC": "#e8746a", "loss": "#c9a8e0",
	"∇GA": "#2f6fa8", "∇AV": "#3f8f3a", "∇SC": "#a82f24", "WU": "#f0c24f", "eval": "#bbbbbb",
}

// pictureMark stands in every picture, so that no other file is overwritten.
const pictureMark = "<!-- siafu bench breakdown -->"

func isPicture(head []byte) bool { return bytes.Contains(head, []byte(pictureMark)) }

// picture draws the tasks of all ranks in the given epochs as an SVG: a lane a
// rank, time to the right.
func picture(w io.Writer, f *trace.File, from, to int) error {
	begin, end := atWork(f, from, to)
	if begin >= end {
		return fault.New(fault.Usage, "bench breakdown", "", "no task of the epochs %d to %d", from, to).Then("name epochs that the timeline has")
	}
	height := legendHeight + len(f.Processes)*(laneHeight+laneGap) + 30
	p := &canvas{w: w}
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", pictureWidth, height)
	p.printf(pictureMark + "\n")
	p.printf(`<rect width="100%%" height="100%%" fill="white"/>` + "\n")
	legend(p)
	scale := float64(pictureWidth-labelWidth-10) / float64(end-begin)
	for lane, process := range f.Processes {
		y := legendHeight + lane*(laneHeight+laneGap)
		p.printf(`<text x="4" y="%d">rank %d %s</text>`+"\n", y+17, process.Rank, process.Role)
		for _, e := range f.Events {
			if e.Rank != process.Rank || e.End() <= begin || e.Start >= end {
				continue
			}
			left, right := max(e.Start, begin), min(e.End(), end)
			p.printf(`<rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"><title>%s epoch %d layer %d interval %d, %v</title></rect>`+"\n",
				labelWidth+scale*float64(left-begin), y, max(scale*float64(right-left), 0.3), laneHeight, colours[e.Task],
				e.Task, e.Epoch, e.Layer, e.Interval, e.Dur.Round(time.Microsecond))
		}
	}
	p.printf(`<text x="%d" y="%d">epochs %d to %d, %v from left to right</text>`+"\n</svg>\n",
		labelWidth, height-10, from, to, (end - begin).Round(10*time.Microsecond))
	return p.err
}

// atWork is when the given epochs are at work.
func atWork(f *trace.File, from, to int) (begin, end time.Duration) {
	begin = 1 << 62
	for _, e := range f.Events {
		if e.Epoch >= from && e.Epoch <= to && e.Task != "eval" {
			begin, end = min(begin, e.Start), max(end, e.End())
		}
	}
	return begin, end
}

func legend(p *canvas) {
	for i, name := range slices.Sorted(maps.Keys(colours)) {
		x := labelWidth + i*85
		p.printf(`<rect x="%d" y="10" width="16" height="16" fill="%s"/><text x="%d" y="23">%s</text>`+"\n", x, colours[name], x+22, name)
	}
}

// canvas writes until the first error.
type canvas struct {
	w   io.Writer
	err error
}

func (c *canvas) printf(format string, args ...any) {
	if c.err == nil {
		_, c.err = fmt.Fprintf(c.w, format, args...)
	}
}
