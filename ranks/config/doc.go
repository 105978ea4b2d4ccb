// Package config is everything that a training run can be told, and what follows
// from it alone: the network, the roles of ranks, codecs, limits, intervals.
//
// The struct Config is the flags of "siafu train", the keys of its TOML file and
// the config.toml of a run folder. Validate has been called before anything else
// is asked of it.
package config
