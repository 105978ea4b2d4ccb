package screen

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"sync"

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
	mu   sync.Mutex
	live bool // its last line may be overwritten
}

// Streams returns writers for out and err that share a terminal. It returns out and err
// themselves if out is not a terminal.
func Streams(out, err io.Writer) (io.Writer, io.Writer) {
	f := terminalOf(out)
	if f == nil {
		return out, err
	}
	t := &Terminal{file: f}
	return &stream{t, f}, &stream{t, err}
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
	if !ok || hosted {
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

// stream is one of a terminal's two streams.
type stream struct {
	of *Terminal
	to io.Writer
}

// Write implements io.Writer. It never fails, so that a run continues if its terminal is
// closed.
func (s *stream) Write(b []byte) (int, error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.of.live && !bytes.HasPrefix(b, []byte(erase)) {
		_, _ = io.WriteString(s.of.file, erase)
	}
	_, _ = s.to.Write(b)
	if len(b) > 0 {
		last := b[bytes.LastIndexByte(b, '\n')+1:]
		s.of.live = bytes.HasPrefix(last, []byte(erase)) && len(last) > len(erase)
	}
	return len(b), nil
}
