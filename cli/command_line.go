package cli

import (
	"reflect"
	"slices"
	"strings"

	"siafu/cli/commandline"
)

// commandLine returns a pointer to the grammar of args: of one command, if args begin with
// its name, else of all commands.
//
// Design note: kong takes 20 ms and 8 MB to build the parser of all commands. Every rank
// of a run parses its command line.
func commandLine(args []string) any {
	whole := reflect.TypeFor[grammar]()
	if len(args) == 0 || slices.Contains(args, "--help") || slices.Contains(args, "-h") || slices.Contains(args, commandline.HelpAll) {
		return new(grammar)
	}
	for i := range whole.NumField() {
		if f := whole.Field(i); strings.ToLower(f.Name) == args[0] {
			return reflect.New(reflect.StructOf([]reflect.StructField{f})).Interface()
		}
	}
	return new(grammar)
}
