package launch

import (
	"slices"
	"syscall"
	"time"

	"siafu/internal/fault"
)

// maxBackoff bounds the wait before a restart.
const maxBackoff = 5 * time.Minute

// outcome describes the end of an attempt.
type outcome struct {
	code    int
	cause   string // the error of the first rank that failed, or other information on it; empty if unknown
	cameUp  bool   // a rank has reported that it is ready, or ranks cannot report it
	stopped bool   // a signal requested the end
	killed  bool   // a second signal requested the immediate end
	lasts   bool   // rank 0 has reported that a restart would end the same way
}

// final are the exit codes without a restart: the same command would end the same way, or needs
// another job.
var final = []int{
	0,
	fault.Usage.ExitCode(), fault.Data.ExitCode(), fault.Missing.ExitCode(),
	fault.Config.ExitCode(), fault.Stopped.ExitCode(), fault.Diverged.ExitCode(),
}

// again reports whether the run is restarted after its n-th restart, and how long to wait before.
func (o *Options) again(end outcome, n int) (wait time.Duration, yes bool) {
	if end.stopped || end.lasts || !end.cameUp || n >= o.Restarts || slices.Contains(final, end.code) {
		return 0, false
	}
	wait = o.Backoff << min(n, 20)
	if wait > maxBackoff || wait < o.Backoff {
		wait = max(maxBackoff, o.Backoff)
	}
	return wait, true
}

// exitCode returns the exit code of the whole run. A run that was killed after a request to stop,
// before it could save, counts as stopped: running it again continues from the last checkpoint.
func (end outcome) exitCode() int {
	if end.killed {
		return 128 + int(syscall.SIGINT)
	}
	if end.stopped && end.code >= 128 {
		return fault.Stopped.ExitCode()
	}
	return end.code
}
