package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"siafu/cli/commandline"
	"siafu/internal/fault"
)

// dispatch parses the command line and runs the command.
func dispatch(args []string, io commandline.Console) error {
	if rest, is := benchArgs(args); is {
		return becomeBench(rest)
	}
	if len(args) > 1 && args[0] == "help" && args[1] != "--help" {
		if root := describe(); root.Find(args[1]) == root {
			text, err := topic(root, args[1])
			if err == nil {
				_, err = fmt.Fprint(io.Out, text)
			}
			return err
		}
	}
	args, behind := cutFlags(args)
	config, err := loadConfig(args)
	if err != nil {
		return err
	}
	config.warn(io.Err)
	err = commandline.Parse(args, io, commandLine(args), kong.Resolvers(kong.ResolverFunc(config.resolve)), kong.Bind(behind))
	return config.withSource(args, withRemedy(args, err))
}

// trainFlags are the flags of train on the command line of another command.
type trainFlags []string

// cutFlags removes the part after -- from a command line of submit or sweep, which kong would
// treat as misplaced arguments.
func cutFlags(args []string) ([]string, trainFlags) {
	if len(args) > 0 && args[0] == "submit" {
		args = joinValue(joinValue(args, "--sbatch"), "--directive")
	}
	if len(args) > 0 && args[0] == "sweep" {
		args = sweepFlagsFirst(args)
	}
	if i := slices.Index(args, "--"); i > 0 && (args[0] == "submit" || args[0] == "sweep") {
		return args[:i], args[i+1:]
	}
	return args, nil
}

// joinValue rewrites FLAG VALUE as FLAG=VALUE, because kong accepts no value that looks like a
// flag. The part after -- is unchanged.
func joinValue(args []string, flag string) (joined []string) {
	for k := 0; k < len(args); k++ {
		if args[k] == "--" {
			return append(joined, args[k:]...)
		}
		if args[k] == flag && k+1 < len(args) {
			k++
			joined = append(joined, flag+"="+args[k])
			continue
		}
		joined = append(joined, args[k])
	}
	return joined
}

// withRemedy replaces the remedy for a flag of train before the -- of submit or sweep.
func withRemedy(args []string, err error) error {
	f := (*fault.Error)(nil)
	if !errors.As(err, &f) || args[0] != "submit" && args[0] != "sweep" {
		return err
	}
	flag, unknown := strings.CutPrefix(f.Detail, "unknown flag --")
	flag, _, _ = strings.Cut(flag, ",")
	if !unknown || describe().Find("train").Flag(flag) == nil {
		return err
	}
	return f.Then("put --%s after --, with the flags of train", flag)
}
