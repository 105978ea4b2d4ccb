package bench

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// peakMemory is by how many bytes do raised the memory of this process at
// most, 0 where the system doesn't tell (it is Linux that does).
func peakMemory(do func()) int64 {
	debug.FreeOSMemory()
	// 5 resets the high-water mark: proc_pid_clear_refs(5).
	reset := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	before := statusBytes("VmRSS:")
	do()
	peak := statusBytes("VmHWM:")
	if reset != nil || before == 0 {
		return 0
	}
	return max(peak-before, 0)
}

// statusBytes is a line of /proc/self/status, 0 where there is none.
func statusBytes(name string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}
