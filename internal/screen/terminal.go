package screen

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Variable names the environment variable with the width, in columns, of the terminal that shows
// the output of ranks.
const Variable = "SIAFU_TERMINAL"

// erase moves the cursor to the beginning of a line and clears the line. A line that may be
// overwritten begins with it.
const erase = "\r\033[K"

// Clear clears the screen of a terminal.
const Clear = "\033[H\033[2J"

// Terminal is a terminal that receives two streams.
type Terminal struct {
	file *os.File
	live bool // its last line may be overwritten
}

// Streams returns writers for out and err. If out is a terminal, they share it. Release applies to both.
func Streams(out, err io.Writer) (io.Writer, io.Writer) {
	r := &release{requested: make(chan struct{})}
	f := terminalOf(out)
	if f == nil {
		return &stream{to: out, turn: newTurn(), release: r}, &stream{to: err, turn: newTurn(), release: r}
	}
	t, both := &Terminal{file: f}, newTurn()
	return &stream{of: t, to: f, turn: both, release: r}, &stream{of: t, to: err, turn: both, release: r}
}

// Behind returns the stream from which Streams made w, or w.
func Behind(w io.Writer) io.Writer {
	if s, ok := w.(*stream); ok {
		return s.to
	}
	return w
}

// Width returns the number of columns of w's terminal, 0 if it is not a terminal. hosted means
// that a launcher started this process, whose own terminal is not the user's.
func Width(w io.Writer, hosted bool) int {
	if told, err := strconv.Atoi(os.Getenv(Variable)); err == nil && told > 0 && hosted {
		return told
	}
	s, ok := w.(*stream)
	if !ok || hosted || s.of == nil {
		return 0
	}
	return columns(s.of.file)
}

// usual is the default width of a terminal.
const usual = 80

func columns(f *os.File) int {
	width := 0
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { // unlike Fd, Control does not make the file blocking
			if size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil {
				width = int(size.Col)
			}
		})
	}
	if width == 0 {
		return usual
	}
	return width
}

// terminalOf returns w if it is a terminal, else nil. /dev/null is a character device too.
func terminalOf(w io.Writer) *os.File {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 || f.Name() == os.DevNull {
		return nil
	}
	return f
}
