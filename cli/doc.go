// Package cli is the command line of siafu. The type grammar lists the commands; each
// command parses its flags into the options of the package that does the work, calls that
// package, and prints the result. Start with run in cli.go.
package cli
