package host

import (
	"sync/atomic"

	"siafu/internal/fault"
)

// RequireMemory returns a fault of kind Config if a command needs more bytes than are available. A
// command calls it before it allocates memory that the system cannot reclaim.
func RequireMemory(op, path string, bytes int64, remedy string) error {
	m := AwaitMemory(bytes)
	if bytes <= m.Available {
		return nil
	}
	const mega = 1e6
	return fault.New(fault.Config, op, path, "it needs about %d MB of memory, but %s has %d MB", (bytes+mega-1)/mega,
		m.LimitedBy, m.Available/mega).
		Then("%s", remedy)
}

// LargerMachine is the remedy for data that a command must have in memory.
const LargerMachine = "use a machine with more memory"

// ceiling is the memory of this host in tests; 0: no limit.
var ceiling atomic.Int64

// LimitMemory makes this host appear to have the given bytes, until restore. Only tests call it.
func LimitMemory(bytes int64) (restore func()) {
	ceiling.Store(bytes)
	return func() { ceiling.Store(0) }
}
