package config

import (
	"maps"

	"siafu/graph/partition"
	"siafu/halo/codec"
	"siafu/halo/refresh"
	"siafu/internal/catalog"
	"siafu/ranks/tune"
)

// Choices returns the tables that flags name in their tag values.
func Choices() map[string][]catalog.Entry {
	return map[string][]catalog.Entry{
		"partitioners": partition.Choices(), "policies": refresh.Choices(), "codecs": tune.Choices(), "taskcodecs": codec.Choices(),
	}
}

// HelpLists returns the lists that help has as ${NAME=}. A parser without them leaves the lists
// out, which saves memory and time.
func HelpLists() map[string]string {
	lists := map[string]string{"policies": refresh.Usage(), "codecs": codec.Names(), "automatic": tune.Names(), "taskcodecs": codec.TaskNames()}
	maps.Copy(lists, partition.HelpLists())
	maps.Copy(lists, networkLists())
	return lists
}
