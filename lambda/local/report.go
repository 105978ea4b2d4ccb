package local

import (
	"fmt"
	"math"
	"time"
)

// usage is what an invocation is charged for.
type usage struct {
	init     time.Duration // of its sandbox, where it is the first one there
	duration time.Duration
	peak     int64 // bytes of memory that the sandbox has had up to now
}

// usage is what an invocation has used that ends now, with the lock. The beginning of
// the sandbox is charged once.
func (b *sandbox) usage(inv *invocation) usage {
	u := usage{init: b.init, peak: b.peak}
	if b.init = 0; inv.taken {
		u.duration = time.Since(inv.since)
	}
	return u
}

// report returns the end of the log of an invocation, as AWS words it. What is billed is the
// beginning of the sandbox too, as for all runtimes that a function brings along.
func (u usage) report(id string, memory int) string {
	text := fmt.Sprintf("START RequestId: %s Version: $LATEST\nEND RequestId: %s\n", id, id)
	text += fmt.Sprintf("REPORT RequestId: %s\tDuration: %.2f ms\tBilled Duration: %.0f ms\tMemory Size: %d MB\tMax Memory Used: %d MB\t",
		id, milliseconds(u.duration), math.Ceil(milliseconds(u.init+u.duration)), memory, megabytes(u.peak))
	if u.init > 0 {
		text += fmt.Sprintf("Init Duration: %.2f ms\t", milliseconds(u.init))
	}
	return text + "\n"
}

// megabytes are those that bytes fill or begin.
func megabytes(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
