package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"siafu/cli/commandline"
	"siafu/internal/fault"
)

// The command bench is a separate program because it needs charts, reference programs and
// tables of papers, which training does not need.
const benchProgram = "siafu-bench"

// benchCmd represents the commands of siafu-bench in the list of commands.
type benchCmd struct{}

// benchArgs returns the arguments of siafu-bench if a command line names bench.
func benchArgs(args []string) (rest []string, is bool) {
	switch {
	case len(args) > 0 && args[0] == "bench":
		return args[1:], true
	case len(args) > 1 && args[0] == "help" && args[1] == "bench":
		return append(slices.Clone(args[2:]), "--help"), true
	}
	return nil, false
}

// becomeBench replaces this process by siafu-bench (exec). Process ID and environment do not
// change, so a launcher still recognises the rank.
func becomeBench(args []string) error {
	path, err := commandline.Sibling("bench", benchProgram)
	if err != nil {
		return err
	}
	return fault.System("bench", path, syscall.Exec(path, append([]string{path}, args...), os.Environ()))
}

// describe returns the description of all commands. It omits the commands of siafu-bench if
// siafu-bench is not installed.
func describe() *commandline.Node {
	parser, err := commandline.NewParser(new(grammar), commandline.HelpLists())
	if err != nil {
		panic(err) // every command line would fail
	}
	root, found := commandline.Describe(parser.Model.Node), new(commandline.Node)
	path, err := commandline.Sibling("bench", benchProgram)
	if err != nil {
		return root
	}
	if text, err := exec.Command(path, "describe").Output(); err == nil && json.Unmarshal(text, found) == nil {
		root.Find("bench").Commands = found.Find("bench").Commands
	}
	return root
}
