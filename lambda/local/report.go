package local

import (
	"fmt"
	"math"
	"time"
)

// usage is the charged usage of an invocation.
type usage struct {
	init     time.Duration // of its sandbox, for the first invocation in the sandbox
	duration time.Duration
	peak     int64 // bytes: peak memory of the sandbox so far
}

// usage returns the usage of an invocation that ends now. Called under the lock. The start of the
// sandbox is charged once.
func (b *sandbox) usage(inv *invocation) usage {
	u := usage{init: b.init, peak: b.peak}
	if b.init = 0; inv.taken {
		u.duration = time.Since(inv.since)
	}
	return u
}

// report returns the end of the log of an invocation, in AWS's format. The billed duration includes
// the start of the sandbox, as for all custom runtimes.
func (u usage) report(id string, memory int) string {
	text := fmt.Sprintf("START RequestId: %s Version: $LATEST\nEND RequestId: %s\n", id, id)
	text += fmt.Sprintf("REPORT RequestId: %s\tDuration: %.2f ms\tBilled Duration: %.0f ms\tMemory Size: %d MB\tMax Memory Used: %d MB\t",
		id, milliseconds(u.duration), math.Ceil(milliseconds(u.init+u.duration)), memory, megabytes(u.peak))
	if u.init > 0 {
		text += fmt.Sprintf("Init Duration: %.2f ms\t", milliseconds(u.init))
	}
	return text + "\n"
}

// megabytes returns bytes in MB, rounded up.
func megabytes(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
