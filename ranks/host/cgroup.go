package host

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// groupMemory is what the control groups of this process still allow it to
// take, in bytes: a batch system gives a job less than its host has. A group
// that is full allows 0. root is "/" but in tests.
func groupMemory(root string) int64 {
	least := int64(Unlimited)
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return least
	}
	for line := range strings.Lines(string(text)) {
		// ID:CONTROLLERS:PATH, version 2 having no controllers.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		switch {
		case fields[1] == "":
			least = min(least, allowed(filepath.Join(root, "sys/fs/cgroup"), fields[2], "memory.max", "memory.current", ""))
		case slices.Contains(strings.Split(fields[1], ","), "memory"):
			least = min(least, allowed(filepath.Join(root, "sys/fs/cgroup/memory"), fields[2],
				"memory.limit_in_bytes", "memory.usage_in_bytes", "total_"))
		}
	}
	return least
}

// allowed is the least that a group and those above it leave: the limit less
// what is used, pages of files not counted, which leave when they must. all is
// what memory.stat calls the numbers of a group with those below it by.
func allowed(mount, group, limit, usage, all string) int64 {
	least := int64(Unlimited)
	for dir := filepath.Join(mount, group); strings.HasPrefix(dir, mount); dir = filepath.Dir(dir) {
		if most, ok := readNumber(filepath.Join(dir, limit)); ok {
			used, _ := readNumber(filepath.Join(dir, usage))
			for _, files := range []string{"inactive_file", "active_file"} {
				used -= procField(filepath.Join(dir, "memory.stat"), all+files)
			}
			least = min(least, max(most-used, 0))
		}
	}
	return least
}

// readNumber reads a file that holds a number; "max" is none.
func readNumber(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
