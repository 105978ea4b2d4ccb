package runfolder

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Locked reports whether a process holds the lock of a run folder. It reads /proc/locks instead of
// taking the lock, because taking it would refuse a run that starts at the same time. The answer
// is known only if the lock file is empty (released) or names a process of this host.
func Locked(run string) (held, known bool) {
	path := filepath.Join(run, lockFile)
	text, err := readLockAt(path)
	if err != nil || !isLockText(text) {
		return false, false
	}
	h := parseHolder(text) // nil if the file is empty
	if host, _ := os.Hostname(); h != nil && h.Host != host {
		return false, false
	}
	var info unix.Stat_t
	if unix.Stat(path, &info) != nil {
		return false, false
	}
	held, known = inLockTable("/proc/locks", fmt.Sprintf("%02x:%02x:%d", unix.Major(info.Dev), unix.Minor(info.Dev), info.Ino))
	if !held && h != nil && isRunning(h.PID) {
		return false, false // some file systems report another device number in /proc/locks than in stat
	}
	return held, known
}

// isRunning reports whether a process runs. A zombie, which its parent has not reaped (common in
// containers), does not run.
func isRunning(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := bytes.Cut(stat, []byte(") ")) // after the name
	return !bytes.HasPrefix(state, []byte("Z")) && !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// inLockTable reports whether a lock table like /proc/locks contains a flock lock of a file (device
// and inode). A line reads "1: FLOCK ADVISORY WRITE 4711 08:01:1234 0 EOF".
func inLockTable(table, file string) (held, known bool) {
	f, err := os.Open(table)
	if err != nil {
		return false, false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 5 && fields[1] == "FLOCK" && fields[5] == file {
			return true, true
		}
	}
	return false, lines.Err() == nil
}
