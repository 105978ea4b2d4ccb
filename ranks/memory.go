package ranks

import (
	"bufio"
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// peakRSS is the largest resident memory that this process has had, in bytes,
// mapped files included.
func peakRSS() int64 {
	if kib := procField("/proc/self/status", "VmHWM:"); kib > 0 {
		return kib << 10
	}
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss << 10
}

// forgetPeak starts peakRSS again from what is resident now, where the kernel
// allows it: rank 0 may have partitioned the graph before it trains.
func forgetPeak() {
	// Design note: without this the report would blame training for pages of
	// the whole dataset that only partitioning mapped. A kernel that refuses
	// leaves the larger number, which is safe.
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200)
}

// availableMemory is what this host, and the control groups of this process,
// can give without swapping, in bytes.
func availableMemory() int64 {
	return min(procField("/proc/meminfo", "MemAvailable:")<<10, groupMemory("/"))
}

// procField reads a number of KiB from a file of lines "Name:   123 kB"; 0
// where there is none.
func procField(path, name string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		fields := bytes.Fields(lines.Bytes())
		if len(fields) > 1 && string(fields[0]) == name {
			n, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			return n
		}
	}
	return 0
}
