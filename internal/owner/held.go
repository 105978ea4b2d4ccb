package owner

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

// Held reports whether a process writes a run folder, if that can be known without
// touching the lock, which would refuse a run that starts meanwhile: where it says nothing,
// as one that was given back, or that a process of this host took it last.
func Held(run string) (held, known bool) {
	path := filepath.Join(run, LockFile)
	text, err := readNamed(path)
	if err != nil || !ours(text) {
		return false, false
	}
	h := parse(text) // nil where it says nothing
	if host, _ := os.Hostname(); h != nil && h.Host != host {
		return false, false
	}
	var info unix.Stat_t
	if unix.Stat(path, &info) != nil {
		return false, false
	}
	held, known = listed("/proc/locks", fmt.Sprintf("%02x:%02x:%d", unix.Major(info.Dev), unix.Minor(info.Dev), info.Ino))
	if !held && h != nil && alive(h.PID) {
		return false, false // some file systems have another number there than in stat
	}
	return held, known
}

// alive reports whether a process runs. A zombie, which its parent has not reaped (common in
// containers), does not.
func alive(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := bytes.Cut(stat, []byte(") ")) // after the name
	return !bytes.HasPrefix(state, []byte("Z")) && !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// listed reports whether a file has a lock of flock, as the kernel lists them: "1: FLOCK
// ADVISORY WRITE 4711 08:01:1234 0 EOF".
func listed(table, file string) (held, known bool) {
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
