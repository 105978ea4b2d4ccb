package bench

import (
	"runtime/debug"

	"siafu/internal/host"
)

// peakMemory returns the peak increase of this process's memory during do in bytes, 0 if the
// system does not report it (Linux does).
func peakMemory(do func()) int64 {
	debug.FreeOSMemory()
	told := host.ForgetPeak()
	before := host.PeakRSS()
	do()
	if !told {
		return 0
	}
	return max(host.PeakRSS()-before, 0)
}
