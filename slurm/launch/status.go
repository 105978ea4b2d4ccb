package launch

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"siafu/internal/fault"
	"siafu/ranks/world"
)

// StatusVariable names the environment variable with the path of the status
// file. It holds lines "ready", "error TEXT", "lasting" and "code N", written by rank 0,
// and by the rank that ends all others, where it sees the file.
const StatusVariable = "SIAFU_STATUS_FILE"

// Join is the part of a process that may be a rank. It turns SIGUSR2, the only
// request to stop that launchers hand on, into SIGTERM, and tells the launcher
// that this process takes signals. end tells it the exit code and the error,
// which may be nil; last is the end of a process that takes all other ranks with it, for
// what the same command would end with again.
// All do nothing in a process that nobody launched, and in a shield: it has the
// environment of the ranks, and says nothing of them. args are the arguments of siafu.
func Join(args []string) (end func(code int, err error), last func(err error)) {
	end, last = func(int, error) {}, func(error) {}
	if len(args) > 0 && args[0] == ShieldCommand {
		return end, last
	}
	l, launched := world.Launched()
	path := os.Getenv(StatusVariable)
	if launched || path != "" {
		takeSignals()
	}
	if path == "" {
		return end, last
	}
	last = func(err error) {
		if fault.Lasting(err) { // else the watch knows better whose fault it was
			tellEnd(path, fault.ExitCode(err), err)
		}
	}
	if l.Rank == 0 {
		tell(path, "ready")
		end = func(code int, err error) { tellEnd(path, code, err) }
	}
	return end, last
}

func tellEnd(path string, code int, err error) {
	if err != nil {
		tell(path, "error "+strings.ReplaceAll(err.Error(), "\n", " "))
		if fault.Lasting(err) {
			tell(path, "lasting")
		}
	}
	tell(path, fmt.Sprintf("code %d", code))
}

// takeSignals also keeps SIGUSR1 from ending a process that does not listen to
// it yet.
func takeSignals() {
	c := make(chan os.Signal, 8)
	signal.Notify(c, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for s := range c {
			if s == syscall.SIGUSR2 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
			}
		}
	}()
}

// tell appends a line. A status that can't be written is not worth a failure:
// the launcher then goes by the exit code that it sees.
func tell(path, line string) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer f.Close()
	fmt.Fprintln(f, line)
}

// status is what rank 0 has told.
type status struct {
	ready bool
	lasts bool   // the same again would end the same way
	code  int    // -1: it did not say
	err   string // empty: none
}

// readStatus reads a status file; a missing one tells nothing.
func readStatus(path string) status {
	s := status{code: -1}
	text, err := os.ReadFile(path)
	if err != nil {
		return s
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var code int
		if lines.Text() == "ready" {
			s.ready = true
		} else if lines.Text() == "lasting" {
			s.lasts = true
		} else if text, ok := strings.CutPrefix(lines.Text(), "error "); ok {
			s.err = text
		} else if _, err := fmt.Sscanf(strings.TrimSpace(lines.Text()), "code %d", &code); err == nil && code >= 0 && code < 256 {
			s.code = code
		}
	}
	return s
}
