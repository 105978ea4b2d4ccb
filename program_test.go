package main

import (
	"os"
	"os/exec"
)

// asProgram makes this test binary siafu itself, for tests with processes.
const asProgram = "RUN_AS_SIAFU"

func init() {
	if os.Getenv(asProgram) != "" {
		main()
	}
}

// process is siafu as a process of its own.
func process(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), asProgram+"=1"), env...)
	return cmd
}
