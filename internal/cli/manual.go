package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"siafu/ranks"
)

// manCmd writes a page for man(1) of the same grammar as the help.
type manCmd struct{}

// Run finds the grammar in kong's own context.
func (c *manCmd) Run(io console, ctx *kong.Context) error {
	_, err := fmt.Fprint(io.out, page(ctx.Model.Node))
	return err
}

func page(root *kong.Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH SIAFU 1 \"\" \"siafu %s\"\n.ad l\n.SH NAME\nsiafu \\- %s\n.SH SYNOPSIS\n.B siafu\nCOMMAND ARGUMENTS…\n.SH COMMANDS\n", ranks.Version, roff(root.Help))
	for _, n := range root.Leaves(true) {
		fmt.Fprintf(&b, ".SS %s\n%s\n", roff(n.Summary()), roff(n.Help))
		for _, p := range n.Positional {
			fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", roff(p.Summary()), roff(p.Help))
		}
		for _, f := range n.Flags {
			if f.Name == "help" {
				continue
			}
			name := "--" + f.Name
			if f.Default != "" {
				name += "=" + f.Default
			}
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(name), roff(f.Help))
		}
	}
	return b.String()
}

// roff is a text without what troff would take for requests and escapes.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
