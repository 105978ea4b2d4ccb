package commandline

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"siafu/ranks/config"
	"siafu/ranks/world"
)

// isPart reports whether a flag is an option that users write as a part of another flag.
func isPart(f *kong.Flag) bool { return f.Tag.Has("part") }

// joinParts hides the flags of parts below a command and adds their help, a paragraph each, to the
// help of the flags that they are parts of.
func joinParts(n *kong.Node) {
	for _, f := range n.Flags {
		p, _ := config.PartOf(f.Name)
		main := slices.IndexFunc(n.Flags, func(g *kong.Flag) bool { return isPart(f) && g.Name == p.Flag })
		if main < 0 {
			continue
		}
		f.Hidden = true
		form := p.Name
		if !p.Switch {
			form += "=" + cmp.Or(f.Default, f.PlaceHolder, "VALUE")
		}
		n.Flags[main].Help += fmt.Sprintf("\n\n%s: %s Key: %s.", form, f.Help, p.Option)
	}
	for _, child := range n.Children {
		joinParts(child)
	}
}

// separateParts separates the parts on a command line of a command with the options of train.
func separateParts(n *kong.Node, args []string) ([]string, error) {
	for _, arg := range args {
		i := slices.IndexFunc(n.Children, func(child *kong.Node) bool { return child.Name == arg })
		if i < 0 {
			break
		}
		n = n.Children[i]
	}
	if !slices.ContainsFunc(n.Flags, isPart) {
		return args, nil
	}
	return config.Separate(args)
}

// adviseParts prints a line for each flag that is now a part of another one.
func adviseParts(w io.Writer, ctx *kong.Context, args []string) {
	if l, launched := world.Launched(); launched && l.Rank > 0 {
		return
	}
	for _, p := range ctx.Path {
		if p.Flag == nil || !isPart(p.Flag) {
			continue
		}
		flag := "--" + p.Flag.Name
		if slices.ContainsFunc(args, func(arg string) bool { return arg == flag || strings.HasPrefix(arg, flag+"=") }) {
			fmt.Fprintf(w, "siafu: warning: %s is an old name: write %s\n", flag, config.Spell(p.Flag.Name, fmt.Sprint(p.Flag.Target)))
		}
	}
}
