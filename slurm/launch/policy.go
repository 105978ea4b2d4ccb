package launch

import (
	"slices"
	"syscall"
	"time"

	"siafu/internal/fault"
)

// maxBackoff bounds the wait before a restart.
const maxBackoff = 5 * time.Minute

// outcome is how an attempt ended.
type outcome struct {
	code    int
	cause   string // what the first rank that failed said, or what is known of it; empty if nothing is
	cameUp  bool   // a rank has said that it is there, or it could not have
	stopped bool   // somebody asked for the end
	killed  bool   // and then for the end at once
	lasts   bool   // rank 0 has said that the same again would end the same way
}

// final are the exit codes after which the same command would end the same
// way, or that ask for another job instead of another attempt.
var final = []int{
	0,
	fault.Usage.ExitCode(), fault.Data.ExitCode(), fault.Missing.ExitCode(),
	fault.Config.ExitCode(), fault.Stopped.ExitCode(), fault.Diverged.ExitCode(),
}

// again decides whether a run is started once more after its n-th restart, and
// how long to wait before.
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

// exitCode returns the code of the whole run. A run that was asked to stop and was
// killed before it could save has nothing new to show, and has lost nothing
// that was saved: to run it again is right.
func (end outcome) exitCode() int {
	if end.killed {
		return 128 + int(syscall.SIGINT)
	}
	if end.stopped && end.code >= 128 {
		return fault.Stopped.ExitCode()
	}
	return end.code
}
