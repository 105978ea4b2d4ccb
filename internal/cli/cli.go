package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/screen"
	"siafu/ranks/config"
	"siafu/ranks/world"
	"siafu/slurm/launch"
)

// console has the input and output of a command.
type console struct {
	in       io.Reader
	out, err io.Writer
	last     func(error) // hears of an error that ends all ranks at once
}

// exit is the panic value of kong's own exits (help), to end run and not the process.
type exit int

// run is one call of the program: parse, do one thing, map the error to an
// exit code.
func run(args []string, in io.Reader, out, errOut io.Writer) (code int) {
	end, last := launch.Join(args)
	out, errOut = screen.Streams(out, errOut)
	var err error
	defer func() { end(code, err) }()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exit:
			code = int(r)
		default:
			fmt.Fprintf(errOut, "siafu: internal error: %v\n%s", r, debug.Stack())
			code = 1
		}
	}()
	err = dispatch(args, console{in, out, errOut, last})
	if err != nil && !silent(err) {
		fmt.Fprintf(errOut, "siafu: %v\n", err)
	}
	if ended := (*launch.Ended)(nil); errors.As(err, &ended) {
		return ended.Code
	}
	return fault.ExitCode(err)
}

// silent reports whether this process need not print an error: it has been printed, the output
// is closed, or rank 0 reports it for all ranks.
func silent(err error) bool {
	var reported interface{ Reported() bool }
	if errors.As(err, &reported) || errors.Is(err, syscall.EPIPE) {
		return true
	}
	l, launched := world.Launched()
	if !launched || l.Rank == 0 || fault.KindOf(err) != fault.Usage {
		return false
	}
	l.WaitForRank0()
	return true
}

// trainFlags are the flags of train on the command line of another command.
type trainFlags []string

// cutFlags removes the part after -- from a command line of submit or sweep, which kong would
// treat as misplaced arguments.
func cutFlags(args []string) ([]string, trainFlags) {
	if len(args) > 0 && args[0] == "submit" {
		args = joinValue(args, "--sbatch")
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

// isCommand reports whether a word after "siafu help" names a command, or is --help.
func isCommand(root *kong.Node, name string) bool {
	return name == "--help" || slices.ContainsFunc(root.Children, func(n *kong.Node) bool { return n.Name == name })
}

// newParser returns the parser of a grammar.
func newParser(grammar any, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(grammar, append(options, kong.Name("siafu"), config.Variables())...)
}

// dispatch parses the command line and runs the command.
func dispatch(args []string, io console) (err error) {
	defer mapped.Catch(&err)
	args, all := cutHelpAll(args)
	args, behind := cutFlags(args)
	config, err := loadConfig(args)
	if err != nil {
		return err
	}
	parser, err := newParser(commandLine(args),
		kong.Description("Train graph neural networks on whole graphs, on the machines you have."),
		kong.Writers(io.out, io.err),
		kong.Exit(func(code int) { panic(exit(code)) }),
		kong.Help(printHelp(all)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Resolvers(config),
		helpLists(),
		kong.Bind(io, behind),
		kong.BindTo(context.Background(), (*context.Context)(nil)),
	)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	if args[0] == "help" {
		if args = append(args[1:], "--help"); !isCommand(parser.Model.Node, args[0]) {
			text, err := topic(parser.Model.Node, args[0])
			if err == nil {
				_, err = fmt.Fprint(io.out, text)
			}
			return err
		}
	}
	if err := config.warn(io.err); err != nil {
		return err
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		if f := (*fault.Error)(nil); errors.As(err, &f) {
			return f
		}
		if errors.Is(err, syscall.EPIPE) { // of help whose reader has gone
			return err
		}
		return fault.New(fault.Usage, "", "", "%v", err).Then("%s", remedy(parser.Model.Node, args, err))
	}
	return ctx.Run()
}
