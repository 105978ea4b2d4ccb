package cli

import (
	"os"

	"siafu/cli/commandline"
)

// Main runs siafu with the arguments of this process and ends the process.
func Main() { commandline.Main(os.Args[1:], dispatch) }
