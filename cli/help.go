package cli

import (
	"fmt"
	"slices"
	"strings"

	"siafu/cli/commandline"
	"siafu/internal/catalog"
	"siafu/internal/fault"
	"siafu/ranks/config"
)

// topic explains NAME of "siafu help NAME" if NAME is not a command. A topic is the recipes,
// the networks, the conflicts, a group of train's flags, or a flag. A flag's topic contains its
// values, conflicting options, and an entry for each command that has the flag. If a group and
// a flag have the same name, the flag is written with its dashes.
func topic(root *commandline.Node, name string) (string, error) {
	if p, ok := config.PartOf(strings.TrimPrefix(name, "--")); ok && root.Find("train").Flag(p.Flag) != nil {
		name = p.Flag
	}
	switch name {
	case "recipes":
		return config.RecipeTable(), nil
	case "networks":
		return config.NetworkTable(), nil
	case "conflicts":
		return "Options and properties of a run that do not work together:\n\n" + wrappedLines(config.ConflictTable("")), nil
	}
	var b strings.Builder
	var values []catalog.Entry
	inGroup := func(f commandline.Flag) bool { return f.Group != "" && strings.EqualFold(f.Group, name) }
	isGroup := slices.ContainsFunc(root.Find("train").Flags, inGroup)
	for _, n := range root.Leaves() {
		for _, f := range n.Flags {
			switch {
			case !isGroup && f.Name == strings.TrimPrefix(name, "--"):
				fmt.Fprintf(&b, "siafu %s %s\n%s", n.Path, f.Summary, commandline.Paragraphs(f.Help, 4))
				if n.Path == "train" {
					b.WriteString(wrappedLines(config.ConflictTable(f.Name)))
				}
				if f.Choices != nil {
					values = f.Choices
				}
			case n.Path == "train" && inGroup(f):
				fmt.Fprintf(&b, "%s\n%s", f.Summary, commandline.Paragraphs(f.Help, 4))
			}
		}
	}
	for _, c := range values {
		b.WriteString(commandline.Wrapped(c.Form+": "+strings.ReplaceAll(c.Help, "`", "")+".", 4))
	}
	if b.Len() == 0 {
		return "", fault.New(fault.Usage, "help", "", "there is no command, topic or flag %q", name).Then(`see "siafu help"`)
	}
	return b.String(), nil
}

// wrappedLines wraps each line of a text and indents it.
func wrappedLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(commandline.Wrapped(strings.TrimSuffix(line, "\n"), 4))
	}
	return b.String()
}
