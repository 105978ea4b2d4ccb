// Package commandline runs the command lines of siafu and siafu-bench. Start with Run: it
// joins the launcher and turns an error into a message and an exit code. Parse parses the
// arguments with kong and calls the command. Describe lists commands and flags for help,
// completion and the manual page.
package commandline
