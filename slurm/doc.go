// Package slurm writes and submits batch scripts. Nothing is here yet:
// docs/cluster.md shows a script to start from.
package slurm
