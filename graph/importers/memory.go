package importers

import (
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/internal/npy"
)

// resources are the open files and the memory of an import. They are valid until release, after the
// dataset was written.
type resources struct {
	arena   *mapped.Arena
	closers []func() error
}

func newResources() *resources { return &resources{arena: mapped.NewArena()} }

// release frees everything. Nothing was written, so that errors of close do not matter.
func (k *resources) release() {
	for _, c := range k.closers {
		c()
	}
	k.arena.Free()
}

// file maps a file until release.
func (k *resources) file(path string) []byte {
	f := must(mapped.OpenFile(path))
	k.closers = append(k.closers, f.Close)
	return f.Bytes()
}

// zip opens an npz file until release.
func (k *resources) zip(path string) *npy.Zip {
	z := must(npy.OpenZip(path))
	k.closers = append(k.closers, z.Close)
	return z
}

// reserve makes n elements in the arena of the resources. Sizes come from files, so that lack of
// memory is a fault, not a panic.
func reserve[T mapped.Elem](k *resources, at input, n int) (s []T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.New(fault.Runtime, at.op, at.path, "%d elements do not fit into memory (%v)", n, r).
				Then("use a machine with more memory")
		}
	}()
	return mapped.Make[T](k.arena, n), nil
}
