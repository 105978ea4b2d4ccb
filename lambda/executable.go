package lambda

import (
	"os"
	"path/filepath"
	"runtime"

	"siafu/internal/fault"
)

// functionFolders are where the function is, relative to the folder of the program: in a
// checkout, in a release archive, and beside the bin folder of an installed program.
var functionFolders = []string{"build/lambda", "lib/siafu", "../lib/siafu"}

// Executable returns the path of the function's executable for an architecture: named, if
// it is not empty, or the first one in the folders of this program. If no folder has one,
// it returns the path in the first folder, where "make function" writes it.
func Executable(named, arch string) (string, error) {
	if named != "" {
		return filepath.Abs(named)
	}
	self, err := os.Executable()
	if err != nil {
		return "", fault.System("lambda", "", err)
	}
	return executableIn(filepath.Dir(self), arch), nil
}

// executableIn looks in functionFolders below dir. The function of this machine's
// architecture has no folder of its own.
func executableIn(dir, arch string) string {
	name := "bootstrap"
	if arch != runtime.GOARCH {
		name = filepath.Join(arch, name)
	}
	for _, folder := range functionFolders {
		path := filepath.Join(dir, folder, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return filepath.Join(dir, functionFolders[0], name)
}
