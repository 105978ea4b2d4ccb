package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// A reader that goes away, as in "siafu report … | head", ends us quietly.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
