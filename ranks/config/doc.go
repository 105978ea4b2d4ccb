// Package config has the options of a training run and everything that follows from them
// alone: the network, the roles of ranks, codecs, limits and intervals.
//
// The struct Config defines the flags of "siafu train", the keys of its TOML file and the
// config.toml of a run folder. Call Validate before any other method.
package config
