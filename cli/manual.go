package cli

import (
	"fmt"
	"strings"

	"siafu/cli/commandline"
	"siafu/ranks"
)

// manCmd writes a page for man(1) from the grammar of the help.
type manCmd struct{}

func (c *manCmd) Run(io commandline.Console) error {
	_, err := fmt.Fprint(io.Out, page(describe()))
	return err
}

func page(root *commandline.Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH SIAFU 1 \"\" \"siafu %s\"\n.ad l\n.SH NAME\nsiafu \\- %s\n.SH SYNOPSIS\n.B siafu\nCOMMAND ARGUMENTS…\n.SH "+
		"COMMANDS\n", ranks.Version, roff(commandline.Description))
	for _, n := range root.Leaves() {
		fmt.Fprintf(&b, ".SS %s\n%s\n", roff(n.Summary), roff(n.Help))
		for _, p := range n.Args {
			fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", roff(p.Summary), roff(p.Help))
		}
		for _, f := range n.Flags {
			name := "--" + f.Name
			if f.Default != "" {
				name += "=" + f.Default
			}
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(name), roff(f.Help))
		}
	}
	return b.String()
}

// roff escapes the characters that troff would interpret as requests and escapes.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n\n", "\n.br\n", "\n", " ").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
