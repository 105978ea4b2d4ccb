// Siafu trains graph neural networks on whole graphs over MPI. The commands are in
// package siafu/cli.
package main

import "siafu/cli"

func main() { cli.Main() }
