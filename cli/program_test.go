package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"siafu/bench/commands"
)

// asProgram makes this test binary siafu itself, for tests with processes. By the name of
// siafu-bench it is that program.
const asProgram = "RUN_AS_SIAFU"

func init() {
	switch {
	case filepath.Base(os.Args[0]) == benchProgram:
		commands.Main()
	case os.Getenv(asProgram) != "":
		Main()
	}
}

// process returns a command that runs siafu in another process.
func process(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), asProgram+"=1"), env...)
	return cmd
}

// TestMain runs the tests in the repository's root: they read its documents, scripts and
// sources. siafu-bench is in PATH.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		bin, err := os.MkdirTemp("", "siafu-bin")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(bin)
		self, err := os.Executable()
		if err == nil {
			err = os.Symlink(self, filepath.Join(bin, benchProgram))
		}
		if err == nil {
			err = os.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		}
		if err == nil {
			err = os.Chdir("..")
		}
		if err != nil {
			panic(err)
		}
		return m.Run()
	}())
}
