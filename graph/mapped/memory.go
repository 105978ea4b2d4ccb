//go:build !race

package mapped

// UnderRace tells that the race detector is on: arrays are on the garbage-collected
// heap, measurements of memory mean nothing, and pools forget what they hold.
const UnderRace = false

// reserve gives zeroed memory, with what an arena asks for beside it.
func reserve(size, flags int) ([]byte, error) { return mmap(size, flags) }

// release gives it back.
func release(b []byte, _ int) { munmap(b) }
