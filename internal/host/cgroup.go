package host

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// groupMemory returns the memory that the control groups of this process still allow: a batch
// system gives a job less than the host has. A full group allows 0. root is "/" except in
// tests.
func groupMemory(root string) Memory {
	least := Memory{Unlimited, Unlimited, "this host"}
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return least
	}
	for line := range strings.Lines(string(text)) {
		// ID:CONTROLLERS:PATH, without controllers in version 2.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		switch {
		case fields[1] == "":
			least.narrow(filepath.Join(root, "sys/fs/cgroup"), fields[2], "memory.max", "memory.current", "")
		case slices.Contains(strings.Split(fields[1], ","), "memory"):
			least.narrow(filepath.Join(root, "sys/fs/cgroup/memory"), fields[2],
				"memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
		}
	}
	return least
}

// narrow limits m to the free memory of a group and its ancestors: the limit minus usage,
// without reclaimable file pages. all is the prefix in memory.stat of numbers that include
// descendants.
func (m *Memory) narrow(mount, group, limit, usage, all string) {
	for dir := filepath.Join(mount, group); strings.HasPrefix(dir, mount); dir = filepath.Dir(dir) {
		most, ok := readNumber(filepath.Join(dir, limit))
		if !ok {
			continue
		}
		m.Most = min(m.Most, most)
		used, _ := readNumber(filepath.Join(dir, usage))
		if most-used >= m.Available { // file pages would only add to it, and memory.stat is slow
			continue
		}
		used -= sumFields(filepath.Join(dir, "memory.stat"), all+"inactive_file", all+"active_file")
		if there := max(most-used, 0); there < m.Available {
			m.Available, m.LimitedBy = there, "the control group "+dir
		}
	}
}

// readNumber reads a file with one number. "max" is not a number.
func readNumber(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
