package launch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"siafu/internal/fault"
	"siafu/ranks/world"
)

// StatusVariable names the environment variable with the path of the status file. The file has the
// lines "ready", "error TEXT", "lasting" and "code N". Rank 0 writes them, or the rank that continues
// its work (Lead), and the rank that ends all others if it can access the file. Other ranks write
// "other N" at the end of a run: the rank that led it may not belong to this launcher.
const StatusVariable = "SIAFU_STATUS_FILE"

// Join connects a process that may be a rank with its launcher. It turns SIGUSR2 into SIGTERM,
// because launchers forward no other signal that can request a stop. It reports to the launcher that
// this process handles signals. The caller must report its exit code and its error, which may be
// nil, with end. A process that ends all other ranks must call last, which reports errors that a
// restart would repeat.
//
// Without a launcher, Join and these functions do nothing. The same applies to a process that calls
// Shield: it has the environment of the ranks but is no rank. args are the arguments of siafu.
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
		if fault.Lasting(err) { // for other errors, the launcher's output identifies the cause better
			reportEnd(path, fault.ExitCode(err), err)
		}
	}
	if l.Rank == 0 {
		report(path, "ready")
		Lead()
	}
	end = func(code int, err error) {
		excluded := (*world.ExcludedError)(nil)
		switch {
		case errors.As(err, &excluded):
		case leads.Load():
			reportEnd(path, code, err)
		case code == 0 || code == fault.Stopped.ExitCode(): // codes of the whole run
			report(path, fmt.Sprintf("other %d", code))
		}
	}
	return end, last
}

// leads is set if this process reports the end of the run.
var leads atomic.Bool

// Lead makes this process report the end of the run, as rank 0 does at first.
func Lead() { leads.Store(true) }

func reportEnd(path string, code int, err error) {
	if err != nil {
		report(path, "error "+strings.ReplaceAll(err.Error(), "\n", " "))
		if fault.Lasting(err) {
			report(path, "lasting")
		}
	}
	report(path, fmt.Sprintf("code %d", code))
}

// takeSignals turns SIGUSR2 into SIGTERM. It also ignores SIGUSR1, which would end a process
// without a handler.
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

// report appends a line to the status file. It ignores errors: without a status, the launcher uses
// the exit code of its child.
func report(path, line string) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer f.Close()
	fmt.Fprintln(f, line)
}

// status is the content of a status file.
type status struct {
	ready bool
	lasts bool   // a restart would end the same way
	code  int    // -1: unknown
	other int    // code of a rank that does not lead; -1: unknown
	err   string // empty: none
}

// readStatus reads a status file, which may be missing.
func readStatus(path string) status {
	s := status{code: -1, other: -1}
	text, err := os.ReadFile(path)
	if err != nil {
		return s
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if lines.Text() == "ready" {
			s.ready = true
		} else if lines.Text() == "lasting" {
			s.lasts = true
		} else if text, ok := strings.CutPrefix(lines.Text(), "error "); ok {
			s.err = text
		} else {
			scanCode(lines.Text(), "code %d", &s.code)
			scanCode(lines.Text(), "other %d", &s.other)
		}
	}
	return s
}

// scanCode sets code if a line has the format, with an exit code.
func scanCode(line, format string, code *int) {
	var n int
	if _, err := fmt.Sscanf(strings.TrimSpace(line), format, &n); err == nil && n >= 0 && n < 256 {
		*code = n
	}
}
