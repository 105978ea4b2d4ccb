package commandline

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"siafu/internal/fault"
	"siafu/ranks/config"
)

// Description is the purpose of siafu in one sentence.
const Description = "Train graph neural networks on whole graphs, on the machines you have."

// NewParser returns a parser. Its help contains lists of values only if HelpLists is an option.
func NewParser(grammar any, options ...kong.Option) (*kong.Kong, error) {
	parser, err := kong.New(grammar, append(options, kong.Name("siafu"), config.Variables())...)
	if err == nil {
		joinParts(parser.Model.Node)
	}
	return parser, err
}

// Parse parses a command line and runs its command. It prints help for no arguments, --help,
// and help before a command name. grammar is a pointer to the struct of the commands.
func Parse(args []string, c Console, grammar any, options ...kong.Option) error {
	for i, arg := range args {
		if !utf8.ValidString(arg) { // the parser, the configuration and summaries would replace its bytes
			return fault.New(fault.Usage, "", "", "argument %d, %q, is not UTF-8", i+1, arg).
				Then("rename the file or folder, or give a path through a symbolic link")
		}
	}
	args, all := cutHelpAll(args)
	showsHelp := func(arg string) bool { return slices.Contains([]string{"help", "--help", "-h", "describe"}, arg) }
	if len(args) == 0 || slices.ContainsFunc(args, showsHelp) {
		options = append(options, HelpLists())
	}
	parser, err := NewParser(grammar, append(options,
		kong.Description(Description),
		kong.Writers(c.Out, c.Err),
		kong.Exit(func(code int) { panic(exit(code)) }),
		kong.Help(printHelp(all)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Bind(c),
		kong.BindTo(context.Background(), (*context.Context)(nil)),
	)...)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	if args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	separated, err := separateParts(parser.Model.Node, args)
	if err != nil {
		return err
	}
	ctx, err := parser.Parse(separated)
	if err != nil {
		if f := (*fault.Error)(nil); errors.As(err, &f) {
			return f
		}
		if errors.Is(err, syscall.EPIPE) { // the reader of the help has closed the pipe
			return err
		}
		return fault.New(fault.Usage, "", "", "%s", config.Spelled(err.Error())).Then(`see "siafu help"`)
	}
	adviseParts(c.Err, ctx, args)
	return ctx.Run()
}
