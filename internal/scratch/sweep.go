package scratch

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// abandoned is the time without changes after which an entry of unknown owner is considered
// abandoned.
const abandoned = 24 * time.Hour

// Sweep removes the folders that dead processes have left for the name final, and returns their
// paths. It locks each folder, and calls undo to remove other remains of the process; undo may be
// nil. If undo fails, the folder remains for the next attempt. Folders that cannot be removed
// remain, too; they are harmless.
func Sweep(final string, undo func(path string) error) (removed []string) {
	return sweep(filepath.Dir(final), folderPrefix(final), undo)
}

// SweepAll sweeps all names in a folder, including files.
func SweepAll(dir string, undo func(path string) error) (removed []string) {
	return sweep(dir, "", undo)
}

// sweep removes the abandoned entries of dir whose names begin with prefix; an empty prefix means
// all entries.
func sweep(dir, prefix string, undo func(path string) error) (removed []string) {
	entries, _ := os.ReadDir(dir) // entries that cannot be read remain
	for _, e := range entries {
		id, movedAside := strings.CutSuffix(e.Name(), aside)
		at := strings.LastIndex(id, infix)
		if at < 0 || prefix != "" && id[:at+len(infix)] != prefix {
			continue
		}
		ours, here := parse(id[:at+len(infix)], id)
		final := filepath.Join(dir, strings.TrimPrefix(id[:at], "."))
		// A folder that was moved aside may be the only copy.
		if path := filepath.Join(dir, e.Name()); ours && (!movedAside || exists(final)) && remove(path, here, undo) {
			removed = append(removed, path)
		}
	}
	return removed
}

// remove removes an entry created by siafu if its creator has ended. The entry must belong to the
// user of this process: in a shared folder, other users may create the same names.
func remove(path string, here bool, undo func(path string) error) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() {
		return false
	}
	lock, err := hold(path)
	if err != nil {
		return false
	}
	if lock != nil {
		defer lock.Close()
	}
	if lock == nil || !here {
		info, err := os.Lstat(path)
		if err != nil || time.Since(info.ModTime()) < abandoned {
			return false
		}
	}
	if undo != nil && undo(path) != nil {
		return false
	}
	return os.RemoveAll(path) == nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
