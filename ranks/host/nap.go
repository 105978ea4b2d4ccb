package host

import (
	"syscall"
	"time"
)

// Nap is time.Sleep of less than a millisecond. Where all other goroutines wait,
// time.Sleep takes a millisecond at the least, as long as Go's runtime waits for timers
// of an idle process; Nap keeps its thread, and takes about a tenth of that.
func Nap(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil) // a signal ends it early
}
