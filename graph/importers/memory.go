package importers

import (
	"fmt"

	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/graph/npy"
)

// keeper holds what a dataset lies in while it is being written: mapped files
// and an arena.
type keeper struct {
	arena   *mapped.Arena
	closers []func() error
}

func newKeeper() *keeper { return &keeper{arena: mapped.NewArena()} }

// release gives everything back. Nothing was written through it, so that
// failures to close do not matter.
func (k *keeper) release() {
	for _, c := range k.closers {
		c()
	}
	k.arena.Free()
}

// file maps a file until release.
func (k *keeper) file(path string) ([]byte, error) {
	f, err := mapped.OpenFile(path)
	if err != nil {
		return nil, err
	}
	k.closers = append(k.closers, f.Close)
	return f.Bytes(), nil
}

// zip opens an npz file until release.
func (k *keeper) zip(path string) (*npy.Zip, error) {
	z, err := npy.OpenZip(path)
	if err != nil {
		return nil, err
	}
	k.closers = append(k.closers, z.Close)
	return z, nil
}

// npy maps an npy file until release.
func (k *keeper) npy(path string) (*npy.Array, error) {
	a, done, err := npy.Map(path)
	if err != nil {
		return nil, err
	}
	k.closers = append(k.closers, done)
	return a, nil
}

// reserve makes n elements in the keeper's arena. Sizes come from files, so
// that memory running out is a fault and no programmer's error.
func reserve[T mapped.Elem](k *keeper, op, path string, n int) (s []T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.New(fault.Runtime, op, path, "%d elements do not fit into memory (%v)", n, r).
				Then("use a machine with more memory")
		}
	}()
	return mapped.Make[T](k.arena, n), nil
}

// dense is the features that an array [n x dim] holds. They stay where they
// are when they are float32 in rows already, and are converted into mapped
// memory otherwise.
func dense(k *keeper, op string, path string, a *npy.Array, n int64) ([]float32, int, error) {
	if len(a.Shape) != 2 || int64(a.Shape[0]) != n {
		return nil, 0, fault.New(fault.Data, op, path, "features have shape %v, expected are %d rows", a.Shape, n)
	}
	dim := a.Shape[1]
	if dim < 1 {
		// Rows without columns have no bytes that would prove them.
		return nil, 0, fault.New(fault.Data, op, path, "features have shape %v, expected is a column or more", a.Shape)
	}
	if a.Type == "<f4" && !a.Fortran {
		x, err := a.Float32s()
		if err != nil {
			return nil, 0, err
		}
		return x, dim, checkFinite(op, path, x, dim)
	}
	x, err := reserve[float32](k, op, path, a.Len())
	if err != nil {
		return nil, 0, err
	}
	if err := a.CopyFloat32s(x); err != nil {
		return nil, 0, err
	}
	return x, dim, checkFinite(op, path, x, dim)
}

// integers is an array of whole numbers of the given shape; a negative
// dimension stands for any.
func integers(op, path string, a *npy.Array, shape ...int) ([]int64, error) {
	ok := len(a.Shape) == len(shape)
	for i := 0; ok && i < len(shape); i++ {
		ok = shape[i] < 0 || shape[i] == a.Shape[i]
	}
	if !ok {
		return nil, fault.New(fault.Data, op, path, "shape is %v, expected %s", a.Shape, shapeText(shape))
	}
	return a.Int64s()
}

func shapeText(shape []int) string {
	s := "["
	for i, n := range shape {
		if i > 0 {
			s += " "
		}
		if n < 0 {
			s += "any"
		} else {
			s += fmt.Sprint(n)
		}
	}
	return s + "]"
}
