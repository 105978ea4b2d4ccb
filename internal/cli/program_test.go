package cli

import (
	"os"
	"os/exec"
	"testing"
)

// asProgram makes this test binary siafu itself, for tests with processes.
const asProgram = "RUN_AS_SIAFU"

func init() {
	if os.Getenv(asProgram) != "" {
		Main()
	}
}

// process is siafu as a process of its own.
func process(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), asProgram+"=1"), env...)
	return cmd
}

// TestMain runs the tests in the repository's root: they read its documents, scripts and
// sources.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
