package alive

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// startTime returns the time at which a process of this machine was started, in ticks since the
// boot. It identifies a process, because process ids are used again. 0: unknown, or no such process.
func startTime(pid int) uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name of the program, in parentheses, may contain spaces. The start is field 22.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return 0
	}
	ticks, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return 0
	}
	return ticks
}
