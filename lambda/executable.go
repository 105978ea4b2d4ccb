package lambda

import (
	"os"
	"path/filepath"
	"runtime"

	"siafu/internal/fault"
)

// functionFolders are the folders of the function, relative to the program's folder: in a checkout,
// in a release archive, and next to the bin folder of an installed program.
var functionFolders = []string{"build/lambda", "lib/siafu", "../lib/siafu"}

// Executable returns the path of the function's executable for an architecture. It is named, if not
// empty, or else the first existing file in the folders of this program. If there is none, it
// returns the path in the first folder, where "make function" writes the executable.
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

// executableIn searches functionFolders below dir. The executable for this machine's architecture
// is not in a subfolder.
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
