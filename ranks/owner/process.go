package owner

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Process is a process of some host. Start tells apart two that had the same
// number.
type Process struct {
	PID   int    `json:"pid"`
	Start int64  `json:"start"` // clock ticks after the machine's
	Host  string `json:"host"`
}

// Self is this process.
func Self() Process { return Of(os.Getpid()) }

// Of is the process of this host that has a number now.
func Of(pid int) Process {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return Process{PID: pid, Start: startOf(pid), Host: host}
}

// Alive tells whether the process runs on this host. One that has ended and
// that nobody has waited for, as in a container whose first process does not,
// keeps its number and its start.
func (p Process) Alive() bool {
	err := unix.Kill(p.PID, 0)
	if p.PID <= 0 || err != nil && err != unix.EPERM || startOf(p.PID) != p.Start {
		return false
	}
	f := stat(p.PID)
	return f == nil || string(f[0]) != "Z" && string(f[0]) != "X"
}

// startOf is when a process started, 0 where that is not known: field 22 of
// /proc/PID/stat.
func startOf(pid int) int64 {
	f := stat(pid)
	if f == nil {
		return 0
	}
	start, _ := strconv.ParseInt(string(f[19]), 10, 64)
	return start
}

// stat are the fields of /proc/PID/stat behind the command in parentheses, of
// which the first is the state; nil where they cannot be read.
func stat(pid int) [][]byte {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return nil
	}
	return fields
}
