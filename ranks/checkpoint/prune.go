package checkpoint

import (
	"os"
	"path/filepath"

	"siafu/graph/durable"
	"siafu/graph/fault"
	"siafu/graph/scratch"
)

const opPrune = "remove checkpoint"

// Prune keeps the newest checkpoints that are whole as far as their sizes tell,
// keep of them (0: all), among those up to the given epoch, which has just been
// saved, and removes everything older. It also removes what dead processes left
// half written. It never touches what a living process writes, newer
// checkpoints, nor one into whose folder somebody has put something.
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

// Rewindable fails where Rewind would have to remove something that siafu has
// not written.
func Rewindable(dir string, epoch int) error {
	entries, err := list(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.epoch <= epoch {
			break
		}
		if err := removable(opPrune, e.path); err != nil {
			return err
		}
	}
	return nil
}

// Rewind removes the checkpoints newer than an epoch, whole or not: a run that
// goes on from it would otherwise find them again, with numbers that are no
// longer its own.
func Rewind(dir string, epoch int) (removed []string, err error) {
	if err := Rewindable(dir, epoch); err != nil {
		return nil, err
	}
	entries, err := list(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.epoch <= epoch {
			break
		}
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

// sized tells whether a checkpoint has its files in their sizes. Sums are not
// taken: that would read gigabytes at every epoch that saves.
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

// remove hides a checkpoint before it empties the folder, so that nobody meets
// half of one.
func remove(e entry) error {
	folder, err := scratch.Hide(e.path)
	if err != nil {
		return fault.System(opPrune, e.path, err)
	}
	folder.Close()
	return nil
}

// sweep removes what dead processes were writing or removing.
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
