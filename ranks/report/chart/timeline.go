package chart

import (
	"io"
	"time"

	"siafu/internal/fault"
	"siafu/ranks/trace"
)

// Sizes of a timeline, in pixels.
const (
	timelineWidth = 1100
	rankHeight    = 26 // of a rank with one worker
	workerHeight  = 11 // of each worker, if a rank has several
	rankGap       = 8
	labelWidth    = 130
	legendHeight  = 40
)

// tasks has the colours of tasks: blue for graph work, green for tensor work, orange for
// communication. Forward tasks are light, backward tasks dark.
var tasks = []struct{ name, colour string }{
	{"GA", "#7cc4f2"}, {"AV", "#5fd3b3"}, {"SC", "#f5a76c"}, {"loss", "#cc79a7"},
	{"∇GA", "#0072b2"}, {"∇AV", "#00795a"}, {"∇SC", "#c04a00"}, {"WU", "#e3c800"}, {"eval", "#aaaaaa"},
}

func colourOf(task string) string {
	for _, t := range tasks {
		if t.name == task {
			return t.colour
		}
	}
	return "#666666"
}

// Timeline draws the tasks of all ranks in the given epochs as an SVG element. Each worker has a
// lane, and time increases to the right.
func Timeline(w io.Writer, f *trace.File, from, to int) error {
	begin, end := timeRange(f, from, to)
	if begin >= end {
		return fault.New(fault.Usage, "timeline", "", "no task in epochs %d to %d", from, to).Then("choose epochs within the timeline")
	}
	lanes, bottom := lanesOf(f)
	p := &canvas{w: w}
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" class="timeline" viewBox="0 0 %d %d" width="%d" height="%d" `+
		`font-family="sans-serif" font-size="12" role="img" aria-label="timeline">`+"\n",
		timelineWidth, bottom+30, timelineWidth, bottom+30)
	p.printf(`<rect class="paper" width="100%%" height="100%%" fill="white"/>` + "\n")
	for i, t := range tasks {
		x := labelWidth + i*85
		p.printf(`<rect x="%d" y="10" width="16" height="16" fill="%s"/><text x="%d" y="23">%s</text>`+"\n", x, t.colour, x+22, t.name)
	}
	for _, process := range f.Processes {
		p.printf(`<text x="4" y="%d">rank %d %s</text>`+"\n", lanes[process.Rank].top+17, process.Rank, process.Role)
	}
	boxes(p, f, lanes, begin, end)
	p.printf(`<text x="%d" y="%d">epochs %d to %d, %s from left to right</text>`+"\n</svg>\n",
		labelWidth, bottom+20, from, to, (end - begin).Round(10*time.Microsecond).String())
	return p.err
}

// boxes draws a box for each task. It omits a box of minimal width that the previous box of the
// lane covers.
func boxes(p *canvas, f *trace.File, lanes map[int]lane, begin, end time.Duration) {
	const minWidth = 0.3
	scale := float64(timelineWidth-labelWidth-10) / float64(end-begin)
	reach := map[[2]int]float64{} // right end of the boxes of each worker
	for i := range f.Events {
		e := &f.Events[i]
		l, known := lanes[e.Rank]
		if !known || e.End() <= begin || e.Start >= end {
			continue
		}
		x := labelWidth + scale*float64(max(e.Start, begin)-begin)
		width := max(scale*float64(min(e.End(), end)-max(e.Start, begin)), minWidth)
		worker := [2]int{e.Rank, e.Worker}
		if width <= minWidth && x+width <= reach[worker]+minWidth/2 {
			continue
		}
		reach[worker] = max(reach[worker], x+width)
		p.printf(`<rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"><title>%s epoch %d layer %d interval %d, %s</title></rect>`+"\n",
			x, l.top+e.Worker*l.step, width, l.height, colourOf(e.Task), e.Task, e.Epoch, e.Layer, e.Interval,
			e.Dur.Round(time.Microsecond).String())
	}
}

// lane is the vertical position of a rank's boxes. Those of worker k begin at top + k*step.
type lane struct{ top, step, height int }

// lanesOf returns the lanes of all ranks, and the end of the last one.
func lanesOf(f *trace.File) (lanes map[int]lane, bottom int) {
	workers := map[int]int{}
	for _, e := range f.Events {
		workers[e.Rank] = max(workers[e.Rank], e.Worker+1)
	}
	lanes, bottom = map[int]lane{}, legendHeight
	for _, p := range f.Processes {
		l := lane{top: bottom, height: rankHeight}
		if workers[p.Rank] > 1 {
			l.step, l.height = workerHeight+1, workerHeight
		}
		lanes[p.Rank] = l
		bottom += max(rankHeight, workers[p.Rank]*l.step) + rankGap
	}
	return lanes, bottom
}

// timeRange returns the time range of the training tasks of the given epochs.
func timeRange(f *trace.File, from, to int) (begin, end time.Duration) {
	begin = 1 << 62
	for _, e := range f.Events {
		if e.Epoch >= from && e.Epoch <= to && e.Task != "eval" {
			begin, end = min(begin, e.Start), max(end, e.End())
		}
	}
	return begin, end
}

// Epochs returns the third and the fourth epoch of a timeline, when the time per epoch has become
// steady. A shorter timeline has its last epoch.
func Epochs(f *trace.File) (from, to int) {
	first, last := 1<<30, 0
	for _, e := range f.Events {
		if e.Epoch > 0 {
			first, last = min(first, e.Epoch), max(last, e.Epoch)
		}
	}
	from = min(max(first, 1)+2, last)
	return from, min(from+1, last)
}
