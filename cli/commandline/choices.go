package commandline

import (
	"maps"

	"github.com/alecthomas/kong"

	"siafu/graph/importers"
	"siafu/internal/catalog"
	"siafu/ranks/config"
)

// choicesOf returns the table that a flag names in its tag values, or nil without this tag.
func choicesOf(f *kong.Flag) []catalog.Entry {
	switch table := f.Tag.Get("values"); table {
	case "":
		return nil
	case "formats":
		return importers.Choices()
	default:
		return config.Choices()[table]
	}
}

// HelpLists returns the lists of values that help texts contain as ${…}. A parser without
// HelpLists omits the lists.
func HelpLists() kong.Vars {
	lists := kong.Vars(config.HelpLists())
	maps.Copy(lists, importers.HelpLists())
	return lists
}
