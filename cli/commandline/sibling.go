package commandline

import (
	"os"
	"os/exec"
	"path/filepath"

	"siafu/internal/fault"
)

// Sibling returns the path of a program that is installed with this one: in the folder of this
// executable, or else in PATH. If the program is missing, the fault has kind Config.
func Sibling(op, name string) (string, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return "", fault.System(op, "", err)
	}
	beside := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(beside); err == nil {
		return beside, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fault.New(fault.Config, op, beside, "the program %s is not installed, neither there nor in PATH", name).
			Then(`run "make build", or install the package of siafu again`)
	}
	return path, nil
}
