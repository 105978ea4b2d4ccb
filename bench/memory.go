package bench

import (
	"runtime/debug"

	"siafu/internal/host"
)

// peakMemory is by how many bytes do raised the memory of this process at
// most, 0 where the system doesn't tell (it is Linux that does).
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
