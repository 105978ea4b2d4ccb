package host

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// PeakRSS returns the maximum resident memory of this process so far, in bytes, including mapped
// files.
func PeakRSS() int64 {
	if bytes := Status("VmHWM:"); bytes > 0 {
		return bytes
	}
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss << 10
}

// Status returns a size in /proc/self/status, such as "VmRSS:", in bytes, 0 if it is missing.
func Status(name string) int64 {
	kib, _ := readField("/proc/self/status", name)
	return kib << 10
}

// Peaks measures PeakRSS for frequent callers. It queries the kernel at most once per second.
type Peaks struct {
	asked time.Time
	bytes int64
}

// RSS returns PeakRSS in bytes, measured at most one second ago.
func (p *Peaks) RSS() int64 {
	if now := time.Now(); now.Sub(p.asked) >= time.Second {
		p.asked, p.bytes = now, PeakRSS()
	}
	return p.bytes
}

// ForgetPeak resets PeakRSS to the currently resident memory, and reports whether the kernel
// permits that.
//
// Design note: rank 0 may partition the graph before it trains. Without the reset, the report of
// training would include the pages of the whole dataset. If the kernel refuses, the report has the
// larger number.
func ForgetPeak() bool {
	return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200) == nil
}

// worthFreeing is the heap size from which FreeMemory collects garbage.
const worthFreeing = 64 << 20

// FreeMemory collects garbage and returns free memory to the operating system, unless the heap of
// this process is smaller than 64 MiB: a collection takes milliseconds of a short run.
func FreeMemory() {
	heap := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(heap)
	size := uint64(0)
	for _, part := range heap {
		size += part.Value.Uint64()
	}
	if size >= worthFreeing {
		debug.FreeOSMemory()
	}
}

// Unlimited is the memory of a host that does not report it: more than any host has, and less
// than size.Most.
const Unlimited = math.MaxInt64 / 2

// AvailableMemory returns the bytes that this host and the control groups of this process can
// give without swapping: 0 if a group is full.
func AvailableMemory() int64 { return look().Available }

// Memory is the memory available to a process from the host, or from its most restrictive
// control group.
type Memory struct {
	Available int64  // bytes that can be allocated now without swapping
	Most      int64  // total bytes, Unlimited if unknown
	LimitedBy string // which limit determines Available: "this host", or a control group's folder
}

// AwaitMemory waits, with a time limit, until the given number of bytes is available, and
// returns the memory of this host. It does not wait for more than the host has.
func AwaitMemory(bytes int64) Memory { return await(bytes, look) }

// AwaitMemory waits up to memoryPatience, because an earlier job or command may still be
// releasing its memory.
const (
	memoryPatience = 3 * time.Second
	memoryPoll     = 50 * time.Millisecond
)

func await(bytes int64, look func() Memory) Memory {
	m := look()
	for begin := time.Now(); m.Available < bytes && bytes <= m.Most && time.Since(begin) < memoryPatience; m = look() {
		time.Sleep(memoryPoll)
	}
	return m
}

// fresh is the time for which a look at the memory serves all ranks of this process: they look
// together, and each look reads some ten files.
const fresh = 5 * time.Millisecond

var seen struct {
	sync.Mutex
	at     time.Time
	memory Memory
}

// look returns the memory of the host, at most fresh ago.
func look() Memory {
	seen.Lock()
	defer seen.Unlock()
	if time.Since(seen.at) >= fresh {
		seen.memory, seen.at = memoryIn("/"), time.Now()
	}
	m := seen.memory
	if most := ceiling.Load(); most > 0 {
		m.Available, m.Most = min(m.Available, most), min(m.Most, most)
	}
	return m
}

// memoryIn returns the memory of the host. root is "/" except in tests.
func memoryIn(root string) Memory {
	m := groupMemory(root)
	info, _ := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	if kib, ok := fieldOf(info, "MemAvailable:"); ok && kib<<10 < m.Available {
		m.Available, m.LimitedBy = kib<<10, "this host"
	}
	if kib, ok := fieldOf(info, "MemTotal:"); ok {
		m.Most = min(m.Most, kib<<10)
	}
	return m
}

// readField reads a number from a file of lines "Name:   123 kB" or "name 123".
func readField(path, name string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	return fieldOf(text, name)
}

// sumFields returns the sum of numbers of a file as readField reads it. A missing number is 0.
func sumFields(path string, names ...string) (sum int64) {
	text, _ := os.ReadFile(path)
	for _, name := range names {
		n, _ := fieldOf(text, name)
		sum += n
	}
	return sum
}

// fieldOf reads a number from the text of such a file.
func fieldOf(text []byte, name string) (int64, bool) {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		fields := bytes.Fields(lines.Bytes())
		if len(fields) > 1 && string(fields[0]) == name {
			n, err := strconv.ParseInt(string(fields[1]), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
