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

// Sweep removes the folders that dead processes have left for the name final, and returns
// their paths. Each is locked while undo, which may be nil, undoes what else its maker has
// left; if that fails the folder stays for the next attempt. Folders that cannot be removed
// stay too; they are harmless.
func Sweep(final string, undo func(path string) error) (removed []string) {
	return sweep(final, folderPrefix(final), undo)
}

func sweep(final, prefix string, undo func(path string) error) (removed []string) {
	dir, err := os.Open(filepath.Dir(final))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what could be read is as good as all
	for _, name := range names {
		id, stepped := strings.CutSuffix(name, aside)
		ours, here := parse(prefix, id)
		// A folder that was moved for a new one may be the only copy.
		if !ours || stepped && !exists(final) {
			continue
		}
		if path := filepath.Join(filepath.Dir(final), name); remove(path, here, undo) {
			removed = append(removed, path)
		}
	}
	return removed
}

// SweepAll sweeps all names in a folder, including files.
func SweepAll(dir string, undo func(path string) error) (removed []string) {
	names, _ := os.ReadDir(dir) // what could be read is as good as all
	for _, e := range names {
		id, stepped := strings.CutSuffix(e.Name(), aside)
		at := strings.LastIndex(id, infix) + len(infix)
		if at < len(infix) {
			continue
		}
		ours, here := parse(id[:at], id)
		final := filepath.Join(dir, strings.TrimPrefix(strings.TrimSuffix(id[:at], infix), "."))
		if path := filepath.Join(dir, e.Name()); ours && (!stepped || exists(final)) && remove(path, here, undo) {
			removed = append(removed, path)
		}
	}
	return removed
}

// remove removes an entry made by siafu if its maker has ended.
func remove(path string, here bool, undo func(path string) error) bool {
	if info, err := os.Lstat(path); err != nil || !own(info) {
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

// own reports whether something belongs to the user of this process. Anybody may
// make a name as ours in a folder that all users share.
func own(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
