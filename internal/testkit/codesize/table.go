package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// kind is the purpose of a source file.
type kind int

const (
	product kind = iota
	support
	tests
	generated
	kinds
)

func (k kind) String() string {
	return [...]string{"product", "test support", "tests", "generated"}[k]
}

// counts is a row of the table.
type counts struct{ files, lines, code, packages, exported, long int }

// columns are the names of the fields of counts.
var columns = []string{"files", "lines", "code", "packages", "exported", "long"}

// fields returns the columns' values.
func (c *counts) fields() []*int {
	return []*int{&c.files, &c.lines, &c.code, &c.packages, &c.exported, &c.long}
}

// size is the table.
type size struct {
	rows  [kinds]counts
	flags int // of siafu train
}

// flagsOf begins the last line of the table.
const flagsOf = "flags of train:"

// write prints the table.
func (s *size) write(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s", "")
	for _, name := range columns {
		fmt.Fprintf(&b, "%10s", name)
	}
	for k := range kinds {
		fmt.Fprintf(&b, "\n%-12s", k)
		for _, n := range s.rows[k].fields() {
			fmt.Fprintf(&b, "%10d", *n)
		}
	}
	_, err := fmt.Fprintf(out, "%s\n%s %d\n", b.String(), flagsOf, s.flags)
	return err
}

// parse reads the parts of a table that report compares: the product and the flags.
func parse(table string) (s size, err error) {
	rows, flags := 0, 0
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if n, found := strings.CutPrefix(line, flagsOf); found {
			s.flags, err = strconv.Atoi(strings.TrimSpace(n))
			flags++
		} else if len(words) == 1+len(columns) && words[0] == product.String() {
			for i, n := range s.rows[product].fields() {
				if *n, err = strconv.Atoi(words[1+i]); err != nil {
					break
				}
			}
			rows++
		}
		if err != nil {
			return s, err
		}
	}
	if rows != 1 || flags != 1 {
		return s, errors.New("not the table of codesize")
	}
	return s, nil
}

// report prints what has grown or become smaller since the table of a file, and the remedy.
func report(before, now size, file string, out io.Writer) (grown bool) {
	smaller := false
	for _, c := range []struct {
		what        string
		before, now int
	}{
		{"lines of code", before.rows[product].code, now.rows[product].code},
		{"packages", before.rows[product].packages, now.rows[product].packages},
		{"lines above 140 columns", before.rows[product].long, now.rows[product].long},
		{"flags of train", before.flags, now.flags},
	} {
		if c.now != c.before {
			fmt.Fprintf(out, "The product has %d %s (%s: %d).\n", c.now, c.what, file, c.before)
		}
		grown, smaller = grown || c.now > c.before, smaller || c.now < c.before
	}
	switch {
	case grown:
		fmt.Fprintf(out, "Remove superfluous code, or run \"make size > %s\" and say in the commit message what the growth buys.\n", file)
	case smaller:
		fmt.Fprintf(out, "Run \"make size > %s\", so that the product stays as small.\n", file)
	}
	return grown
}
