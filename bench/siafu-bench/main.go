// Siafu-bench measures siafu and reproduces published tables. "siafu bench" starts it.
package main

import "siafu/bench/commands"

func main() { commands.Main() }
