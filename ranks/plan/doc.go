// Package plan estimates the memory, traffic and epoch time of a training run, for
// several partitioners and codecs, without running it.
//
// Memory and bytes follow from shapes and from the counts of a partitioning
// (package ranks/forecast). The counts are read from parts/P of the dataset if
// it exists, and computed without building shards otherwise.
// Times follow from rates measured on this machine and dataset (forecast.Host), in
// about a second, and from a link that the user describes.
//
// No function is collective: one process computes a plan.
package plan
