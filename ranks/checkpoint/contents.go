package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"siafu/internal/fault"
	"siafu/internal/inventory"
)

// files lists the files of a checkpoint.
var files = inventory.Files(modelFile, optimizerFile, bestFile, historyFile, partsFile, stateFile, manifestFile)

// Contents returns the files that this package writes into a run folder.
func Contents() inventory.Folder {
	return inventory.Folder{{Name: inventory.Pattern(Dir), In: inventory.Folder{
		{Name: inventory.Pattern(prefix + `\d+`), In: files, Proof: func(path string) bool { return epochOf(filepath.Base(path)) >= 0 }},
		{Name: hidden, In: files},
	}}}
}

// foreign returns the first path at or below the path of a checkpoint that siafu did not write,
// empty for none.
func foreign(path string) (string, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case !info.IsDir():
		return path, nil
	}
	return files.Foreign(path)
}

// removable returns an error if the path of a checkpoint contains foreign files.
func removable(op, path string) error {
	other, err := foreign(path)
	if err != nil {
		return fault.System(op, path, err)
	}
	if other != "" {
		return inventory.Refusal(op, other)
	}
	return nil
}
