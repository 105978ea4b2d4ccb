package importers

import (
	"unsafe"

	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/mapped"
	"siafu/internal/npy"
	"siafu/internal/size"
)

// resources are the source of an import, its open files and its memory. They are valid until
// release, after the dataset was written.
type resources struct {
	input
	arena   *mapped.Arena
	closers []func() error
}

func newResources(source input) *resources {
	return &resources{input: source, arena: mapped.NewArena()}
}

// release frees everything. Nothing was written, so that errors of close do not matter.
func (k *resources) release() {
	for _, c := range k.closers {
		c()
	}
	k.arena.Free()
}

// file maps a file until release.
func (k *resources) file(at input) []byte {
	f := must(mapped.OpenFile(at.path))
	k.closers = append(k.closers, f.Close)
	return f.Bytes()
}

// zip opens an npz file until release.
func (k *resources) zip(at input) zipArrays {
	z := must(npy.OpenZip(at.path))
	k.closers = append(k.closers, z.Close)
	return zipArrays{z, at}
}

// array maps an npy file until release.
func (k *resources) array(at input) ndarray {
	a, done, err := npy.Map(at.path)
	check(err)
	k.closers = append(k.closers, done)
	return ndarray{Array: a, input: at}
}

// reserve makes n elements in the arena of the resources. Sizes come from files, so that lack of
// memory is a fault.
func reserve[T mapped.Elem](k *resources, at input, n int) []T {
	var element T
	check(host.RequireMemory(at.op, at.path, size.Product(int64(n), int64(unsafe.Sizeof(element))), host.LargerMachine))
	defer func() {
		if r := recover(); r != nil {
			check(fault.New(fault.Runtime, at.op, at.path, "%d elements do not fit into memory (%v)", n, r).
				Then(host.LargerMachine))
		}
	}()
	return mapped.Make[T](k.arena, n)
}
