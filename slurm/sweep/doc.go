// Package sweep trains once for each combination of some flags' values. Each training is
// a process of its own, so that one that fails, whatever becomes of it, takes no other
// with it, and each tells its own memory. It has a run folder whose name is its setting,
// where it goes on if it was interrupted, and is not done again if it has ended.
package sweep
