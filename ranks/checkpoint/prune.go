package checkpoint

import (
	"os"
	"path/filepath"

	"siafu/internal/durable"
	"siafu/internal/fault"
	"siafu/internal/scratch"
)

const opPrune = "remove checkpoint"

// Prune keeps the newest complete checkpoints up to the given epoch, which has just been
// saved, and removes all older ones. keep is their number (0: all). Complete means that the
// sizes of the files are right. Prune also removes the unfinished files of dead processes.
// It never touches files that a living process writes, newer checkpoints, or a checkpoint
// folder with foreign files.
func Prune(dir string, keep, epoch int) (removed []string, err error) {
	if err := sweep(dir); err != nil || keep <= 0 {
		return nil, err
	}
	entries, err := list(dir)
	if err != nil {
		return nil, err
	}
	kept := 0
	for _, e := range entries {
		if e.epoch > epoch {
			continue
		}
		if kept < keep {
			if e.epoch == epoch || sized(e.path) {
				kept++
			}
			continue
		}
		if other, err := foreign(e.path); other != "" || err != nil {
			continue
		}
		if err := remove(e); err != nil {
			return removed, err
		}
		removed = append(removed, e.path)
	}
	return removed, nil
}

// Rewindable returns an error if Rewind would have to remove foreign files.
func Rewindable(dir string, epoch int) error {
	_, err := newer(dir, epoch)
	return err
}

// newer returns the checkpoints after an epoch, all without foreign files.
func newer(dir string, epoch int) ([]entry, error) {
	entries, err := list(dir)
	if err != nil {
		return nil, err
	}
	for i, e := range entries {
		if e.epoch <= epoch {
			return entries[:i], nil
		}
		if err := removable(opPrune, e.path); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// Rewind removes all checkpoints newer than an epoch, valid or not. Otherwise a run that
// resumes from this epoch would later find them again, with results of the earlier attempt.
func Rewind(dir string, epoch int) (removed []string, err error) {
	entries, err := newer(dir, epoch)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if err := remove(e); err != nil {
			return removed, err
		}
		removed = append(removed, e.path)
	}
	if removed == nil {
		return nil, nil
	}
	return removed, durable.Sync(opPrune, dir)
}

// sized reports whether a checkpoint's files exist and have their sizes. It takes no checksums,
// which would read gigabytes at every saved epoch.
func sized(path string) bool {
	m, err := readManifest(path)
	if err != nil {
		return false
	}
	for _, f := range m.Files {
		info, err := os.Stat(filepath.Join(path, f.Name))
		if err != nil || info.Size() != f.Bytes {
			return false
		}
	}
	return true
}

// remove hides a checkpoint before it removes the files, so that no reader finds a part of
// them.
func remove(e entry) error {
	folder, err := scratch.Hide(e.path)
	if err != nil {
		return fault.System(opPrune, e.path, err)
	}
	folder.Close()
	return nil
}

// sweep removes the hidden files of dead processes.
func sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fault.System(opPrune, dir, err)
	}
	for _, e := range entries {
		if name := hidden.FindStringSubmatch(e.Name()); name != nil {
			scratch.Sweep(filepath.Join(dir, name[1]), nil)
		}
	}
	return nil
}
