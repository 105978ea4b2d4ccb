package commandline

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"siafu/ranks/config"
)

// HelpAll is the flag that prints all flags of a command; --help prints the usual ones.
const HelpAll = "--help-all"

// printHelp returns the printer of help. For siafu it prints all commands by group. For a
// command with flags tagged usual it prints only these flags, unless all is set. For other
// commands it prints all flags. The tag contains the text of the flag's line if this is not the
// first sentence of its help.
func printHelp(all bool) kong.HelpPrinter {
	return func(options kong.HelpOptions, ctx *kong.Context) error {
		node := ctx.Selected()
		switch {
		case node == nil && ctx.Command() == "":
			return printCommands(ctx.Stdout, ctx.Model.Node)
		case node != nil && !all && slices.ContainsFunc(node.Flags, isUsual):
			return printUsual(ctx.Stdout, node)
		}
		return kong.DefaultHelpPrinter(options, ctx)
	}
}

// cutHelpAll replaces --help-all by --help and reports whether it did.
func cutHelpAll(args []string) (cut []string, all bool) {
	i := slices.Index(args, HelpAll)
	if j := slices.Index(args, "--"); i < 0 || j >= 0 && j < i {
		return args, false
	}
	return slices.Replace(slices.Clone(args), i, i+1, "--help"), true
}

func isUsual(f *kong.Flag) bool { return f.Tag.Has("usual") }

// firstSentence returns the part of a help text that fits next to a flag.
func firstSentence(help string) string {
	help, _, _ = strings.Cut(help, "\n\n")
	first, _, _ := strings.Cut(help, ". ")
	return strings.TrimSuffix(first, ".")
}

func printCommands(w io.Writer, root *kong.Node) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: siafu COMMAND\n\n%s\n", root.Help)
	group := ""
	for _, n := range root.Children {
		if n.Hidden {
			continue
		}
		if g := n.Group; g != nil && g.Title != group {
			group = g.Title
			fmt.Fprintf(&b, "\n%s\n", group)
		}
		fmt.Fprintf(&b, "  %-11s %s\n", n.Name, firstSentence(n.Help))
	}
	b.WriteString("\nsiafu COMMAND --help shows the flags of a command, siafu help FLAG explains one.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// printUsual prints the usual flags of a command by group, one per line.
func printUsual(w io.Writer, node *kong.Node) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: siafu %s\n\n%s\n\n", node.Summary(), node.Help)
	for _, p := range node.Positional {
		fmt.Fprintf(&b, "  %-23s %s\n", p.Summary(), firstSentence(p.Help))
	}
	group, more := "", 0
	for _, f := range node.Flags {
		if !isUsual(f) {
			if !f.Hidden {
				more++
			}
			continue
		}
		if f.Group != nil && f.Group.Title != group {
			group = f.Group.Title
			fmt.Fprintf(&b, "\n%s\n", group)
		}
		text := Wrapped(cmp.Or(config.Expand(f.Tag.Get("usual")), firstSentence(f.Help)), usualColumn)
		fmt.Fprintf(&b, "  %-23s %s\n", usualName(f), strings.TrimSpace(text))
	}
	fmt.Fprintf(&b, "\n%d more flags: siafu %s %s, or by topic: siafu help TOPIC.\n", more, node.Path(), HelpAll)
	fmt.Fprintf(&b, "Topics: %s.\nsiafu help FLAG explains one flag.\n", strings.ToLower(strings.Join(groups(node), " ")))
	_, err := io.WriteString(w, b.String())
	return err
}

// usualColumn is the column at which the texts of usual flags start.
const usualColumn = 26

// usualName returns a flag with its default, or a placeholder if that is empty.
func usualName(f *kong.Flag) string {
	if f.IsBool() {
		return "--" + f.Name
	}
	return "--" + f.Name + "=" + cmp.Or(f.Default, f.PlaceHolder, "NAME")
}

// groups returns the titles of the groups of a command's flags.
func groups(node *kong.Node) (titles []string) {
	for _, f := range node.Flags {
		if f.Group != nil && !slices.Contains(titles, f.Group.Title) {
			titles = append(titles, f.Group.Title)
		}
	}
	return titles
}

// Wrapped wraps a text at 80 columns and indents it.
func Wrapped(text string, indent int) string {
	var b strings.Builder
	margin := strings.Repeat(" ", indent)
	column := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
			b.WriteString(margin)
			column = indent
		case column+1+n > 80:
			b.WriteString("\n" + margin)
			column = indent
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteString("\n")
	return b.String()
}

// Paragraphs wraps each paragraph of a text.
func Paragraphs(text string, indent int) string {
	var b strings.Builder
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		b.WriteString(Wrapped(paragraph, indent))
	}
	return b.String()
}
