package checkpoint

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// owner is a process. Start tells apart two that had the same number.
type owner struct {
	PID   int    `json:"pid"`
	Start int64  `json:"start"` // clock ticks after the machine's
	Host  string `json:"host"`
}

// self is this process.
func self() owner {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return owner{PID: os.Getpid(), Start: startOf(os.Getpid()), Host: host}
}

// alive tells whether the process runs on this host.
func (o owner) alive() bool {
	err := unix.Kill(o.PID, 0)
	return o.PID > 0 && (err == nil || err == unix.EPERM) && startOf(o.PID) == o.Start
}

// startOf is when a process started, 0 where that is not known: field 22 of
// /proc/PID/stat, the 20th behind the command in parentheses.
func startOf(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return 0
	}
	start, _ := strconv.ParseInt(string(fields[19]), 10, 64)
	return start
}
