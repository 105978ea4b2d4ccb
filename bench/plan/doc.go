// Package plan says what a training run would need and how long its epochs
// would take, for several partitioners and codecs, before anything is run.
//
// Memory and bytes follow from shapes and from the counts of a partitioning
// (package ranks/forecast), which are read from parts/P of the dataset where
// they are there, and counted without cutting shards where they are not.
// Seconds follow from rates that are measured on this machine, in about a
// second and on the dataset itself, and from a link that the user describes.
//
// Nothing here is collective: a plan is made by one process.
package plan
