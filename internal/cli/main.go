package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// Main runs the program with the arguments of this process, and ends the process.
func Main() {
	// A reader that goes away, as in "siafu report … | head", ends us quietly.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
