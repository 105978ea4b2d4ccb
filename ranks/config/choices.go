package config

import (
	"maps"

	"siafu/graph/partition"
	"siafu/halo/codec"
	"siafu/halo/predict"
	"siafu/halo/refresh"
	"siafu/internal/catalog"
	"siafu/ranks/tune"
)

// Choices returns the tables of values to which the tag values of flags refer, by name.
func Choices() map[string][]catalog.Entry {
	return map[string][]catalog.Entry{
		"partitioners": partition.Choices(), "policies": refresh.Choices(), "predictions": predict.Choices(),
		"histories": predict.Histories(), "codecs": tune.Choices(), "taskcodecs": codec.Choices(),
	}
}

// HelpLists returns the lists for ${NAME=} in help texts. A parser without them omits the lists,
// which saves memory and time.
func HelpLists() map[string]string {
	lists := map[string]string{"policies": refresh.Usage(), "predictions": predict.Usage(), "histories": predict.HistoryUsage(),
		"codecs": codec.Names(), "automatic": tune.Names(), "taskcodecs": codec.TaskNames()}
	maps.Copy(lists, partition.HelpLists())
	maps.Copy(lists, networkLists())
	return lists
}
