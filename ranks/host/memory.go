package host

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// PeakRSS is the largest resident memory that this process has had, in bytes,
// mapped files included.
func PeakRSS() int64 {
	if kib := procField("/proc/self/status", "VmHWM:"); kib > 0 {
		return kib << 10
	}
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss << 10
}

// ForgetPeak starts PeakRSS again from what is resident now, and tells whether the
// kernel allows it: rank 0 may have partitioned the graph before it trains.
func ForgetPeak() bool {
	// Design note: without this the report would blame training for pages of
	// the whole dataset that only partitioning mapped. A kernel that refuses
	// leaves the larger number, which is safe.
	return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200) == nil
}

// Unlimited is the memory of a host that does not say what it has: more than
// any has, and less than what a forecast cannot count.
const Unlimited = math.MaxInt64 / 2

// AvailableMemory is what this host, and the control groups of this process,
// can give without swapping, in bytes: 0 where a group is full.
func AvailableMemory() int64 { return availableIn("/") }

// availableIn is AvailableMemory below a root that is "/" but in tests.
func availableIn(root string) int64 {
	least := groupMemory(root)
	if kib, ok := readField(filepath.Join(root, "proc/meminfo"), "MemAvailable:"); ok {
		least = min(least, kib<<10)
	}
	return least
}

// procField is readField, 0 where there is no such line.
func procField(path, name string) int64 {
	n, _ := readField(path, name)
	return n
}

// readField reads a number from a file of lines "Name:   123 kB" or "name 123".
func readField(path, name string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		fields := bytes.Fields(lines.Bytes())
		if len(fields) > 1 && string(fields[0]) == name {
			n, err := strconv.ParseInt(string(fields[1]), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
