package mpi

import (
	"cmp"
	"fmt"
	"os"

	"siafu/internal/scratch"
)

// sharedMemory is the final name of the hidden folder (see package scratch) with the memory that a
// rank shares with other ranks of its host: 4 MiB with Open MPI. Without a folder, only mpirun
// would remove this memory, and mpirun may be killed together with its ranks. The lock on the folder
// distinguishes it from the memory of running ranks, and its name from that of other programs.
const sharedMemory = "/dev/shm/siafu"

// backing are the environment variables that set this folder for Open MPI 4 and 5.
var backing = [...]string{"OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory"}

// Release removes the shared memory of this user's killed ranks on this host, and reports each rank
// in a line. It does not report empty folders, whose files mpirun has removed.
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

// shareMemory creates this rank's folder and returns a function that removes it. If it cannot be
// created, or the user has set another one, the library uses its default or that folder.
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
