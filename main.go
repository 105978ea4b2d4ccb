// Siafu trains graph neural networks on whole graphs over MPI. The commands are in
// package siafu/internal/cli.
package main

import "siafu/internal/cli"

func main() { cli.Main() }
