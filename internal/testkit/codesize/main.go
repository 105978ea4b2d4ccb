// Codesize prints the size of the source code as a table, and compares it with a stored table.
//
//	codesize [-against FILE]
//
// It reads the Go and assembly files of the current folder that git tracks, as they are in the
// working tree. C, CUDA, PTX and scripts are not counted. Each file has one kind:
//
//	generated     Go files with the mark "// Code generated … DO NOT EDIT.", and all assembly
//	tests         other files with names that end in _test.go
//	test support  other files below internal/testkit, or below a folder testdata
//	product       all other files
//
// The table has one row for each kind, with these columns:
//
//	files      number of files
//	lines      all lines
//	code       lines with at least a part of a token. Comments and empty lines are no code, also
//	           empty lines of a raw string. In assembly: lines that are not empty and no comment.
//	packages   folders with at least one of the files
//	exported   exported constants, variables, types, functions, and methods of exported types, in
//	           packages other than main and without tests. Fields and methods of interfaces do
//	           not count.
//	long       lines of Go above 140 columns, where a tab has 4 columns. Lines with the tag of a
//	           struct's field do not count.
//
// A last line has the number of flags of siafu train, which are the rows of its table in
// docs/commands.md.
//
// With -against, codesize prints no table. The exit code is 1 if the product has more code,
// packages, long lines or flags than in FILE, an earlier output of codesize. Smaller is allowed.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	against := flag.String("against", "", "`FILE` with an earlier table that the product must not exceed")
	flag.Parse()
	grown, err := run(".", *against, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "codesize:", err)
		os.Exit(2)
	}
	if grown {
		os.Exit(1)
	}
}

// run prints the table of a folder, or, if against is a file, the differences from its table.
func run(dir, against string, out io.Writer) (grown bool, err error) {
	now, err := measure(dir)
	if err != nil {
		return false, err
	}
	if against == "" {
		return false, now.write(out)
	}
	text, err := os.ReadFile(against)
	if err != nil {
		return false, fmt.Errorf(`%w. Run "make size > %s"`, err, against)
	}
	before, err := parse(string(text))
	if err != nil {
		return false, fmt.Errorf(`%s: %w. Run "make size > %s"`, against, err, against)
	}
	return report(before, now, against, out), nil
}
