package cli

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"siafu/ranks/world"
	"siafu/slurm"
)

// checkJob warns, on rank 0, if the batch system has allocated more than the world uses. inside is the
// size of an in-process world.
func checkJob(w io.Writer, inside int) {
	l, launched := world.Launched()
	if !launched {
		l.Size = max(inside, 1)
	}
	if l.Rank != 0 {
		return
	}
	for _, s := range slurm.Check(os.Getenv, l.Size, runtime.NumCPU()) {
		fmt.Fprintf(w, "siafu: warning: %s\n", s)
	}
}
