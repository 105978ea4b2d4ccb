package world

import "time"

// Pauser is a communicator whose rank is alone in its process. Its pauses are more precise than
// time.Sleep, and other goroutines may wait for their end.
type Pauser interface{ Pause(d time.Duration) }

// Pause pauses between two polls of a communicator.
func Pause(c Comm, d time.Duration) {
	if p, ok := c.(Pauser); ok {
		p.Pause(d)
		return
	}
	time.Sleep(d)
}
