package screen

import (
	"fmt"
	"io"
	"time"
)

// Screen shows the epochs of a run.
type Screen struct {
	out   io.Writer
	width int // of a terminal; 0: there is none
	now   func() time.Time

	began, shown time.Time
	line         string // the complete line of an epoch that was not shown
	last         string // current line of the terminal
}

// New shows epochs on out, which is a terminal if its width is not 0.
func New(out io.Writer, width int) *Screen {
	return &Screen{out: out, width: width, now: time.Now, began: time.Now()}
}

// Pauses between lines. Without a terminal, the pause is the elapsed time divided by growth, from
// soon to seldom.
const (
	redraw = 100 * time.Millisecond // on a terminal
	soon   = time.Second
	seldom = 30 * time.Second
	growth = 20
)

// Epoch shows an epoch: full is the complete line, and short returns a line of at most width
// columns for a terminal. The first and last epochs are always shown.
func (s *Screen) Epoch(full string, short func(width int) string, edge bool) {
	now := s.now()
	pause := min(max(now.Sub(s.began)/growth, soon), seldom)
	if s.width > 0 {
		pause = redraw
	}
	due := edge || now.Sub(s.shown) >= pause
	switch {
	case !due:
		s.line = full
		return
	case s.width > 0:
		s.last = clip(short(s.width-1), s.width-1) // some terminals wrap in the last column
		_, _ = io.WriteString(s.out, erase+s.last)
	default:
		_, _ = fmt.Fprintln(s.out, full)
	}
	s.shown, s.line = now, ""
}

// End shows the last epoch, which stays on the screen.
func (s *Screen) End() {
	switch {
	case s.last != "":
		_, _ = io.WriteString(s.out, erase+s.last+"\n")
	case s.line != "" && s.width == 0:
		_, _ = fmt.Fprintln(s.out, s.line)
	}
	s.line, s.last = "", ""
}

// Bar returns a bar for a fraction from 0 to 1, in the given number of columns.
func Bar(share float64, columns int) string {
	if columns < 3 {
		return ""
	}
	bar := make([]byte, columns)
	full := int(min(max(share, 0), 1) * float64(columns-2))
	for i := range bar {
		bar[i] = ' '
		if i <= full {
			bar[i] = '='
		}
	}
	if full < columns-2 {
		bar[full+1] = '>'
	}
	bar[0], bar[columns-1] = '[', ']'
	return string(bar)
}

// clip cuts a line of ASCII to width columns.
func clip(line string, width int) string { return line[:min(len(line), max(width, 0))] }
