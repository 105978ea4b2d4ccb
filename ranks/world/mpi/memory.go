package mpi

import (
	"cmp"
	"fmt"
	"os"

	"siafu/internal/scratch"
)

// sharedMemory is the name beside which each rank keeps its hidden folder (see
// package scratch) with what it shares with the ranks of its host: 4 MiB with
// Open MPI. Nobody but mpirun would ever remove such memory, and it is killed,
// too, where everything is; in a folder that its rank holds it can be told from
// that of the living, and from that of other programs.
const sharedMemory = "/dev/shm/siafu"

// backing are the variables by which Open MPI is told of such a folder; the
// name of what uses it has changed with version 5.
var backing = [...]string{"OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory"}

// Release removes the shared memory of this user's ranks on this host that have
// been killed, and says so, a line for each rank. It says nothing of folders
// that mpirun has emptied, where it outlived its ranks.
func Release(say func(line string)) {
	scratch.Sweep(sharedMemory, func(path string) error {
		if bytes := heldIn(path); bytes > 0 {
			say(fmt.Sprintf("removed path=%s bytes=%d: the shared memory of a rank that was killed", path, bytes))
		}
		return nil
	})
}

// heldIn returns the size of the files in a folder.
func heldIn(dir string) (bytes int64) {
	entries, _ := os.ReadDir(dir) // another rank may be removing it
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// shareMemory makes this rank's folder, and returns what removes it. Where it
// can't be made, or the user has named another, the library goes its own way.
func shareMemory(say func(line string)) (unshare func()) {
	Release(say)
	if cmp.Or(os.Getenv(backing[0]), os.Getenv(backing[1])) != "" {
		return func() {}
	}
	folder, err := scratch.Make(sharedMemory)
	if err != nil {
		return func() {}
	}
	for _, name := range backing {
		os.Setenv(name, folder.Path)
	}
	return folder.Close
}
