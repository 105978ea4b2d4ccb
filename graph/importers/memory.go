package importers

import (
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/npy"
)

// keeper owns the memory of a dataset while it is being written: mapped files and an arena.
type keeper struct {
	arena   *mapped.Arena
	closers []func() error
}

func newKeeper() *keeper { return &keeper{arena: mapped.NewArena()} }

// release frees everything. Nothing was written, so that errors of close do not matter.
func (k *keeper) release() {
	for _, c := range k.closers {
		c()
	}
	k.arena.Free()
}

// file maps a file until release.
func (k *keeper) file(path string) []byte {
	f := must(mapped.OpenFile(path))
	k.closers = append(k.closers, f.Close)
	return f.Bytes()
}

// zip opens an npz file until release.
func (k *keeper) zip(path string) *npy.Zip {
	z := must(npy.OpenZip(path))
	k.closers = append(k.closers, z.Close)
	return z
}

// reserve makes n elements in the keeper's arena. Sizes come from files, so that lack of
// memory is a fault, not a panic.
func reserve[T mapped.Elem](k *keeper, at place, n int) (s []T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.New(fault.Runtime, at.op, at.path, "%d elements do not fit into memory (%v)", n, r).
				Then("use a machine with more memory")
		}
	}()
	return mapped.Make[T](k.arena, n), nil
}
