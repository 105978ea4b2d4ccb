package npy_test

import (
	"fmt"
	"os"
	"path/filepath"

	"siafu/graph/npy"
)

func Example() {
	dir, err := os.MkdirTemp("", "npy")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "x.npy")

	err = npy.WriteFloat32s(path, []int{2, 3}, []float32{1, 2, 3, 4, 5, 6})
	if err != nil {
		panic(err)
	}
	a, err := npy.ReadFile(path)
	if err != nil {
		panic(err)
	}
	x, err := a.Float32s()
	fmt.Println(a.Type, a.Shape, x, err)
	// Output: <f4 [2 3] [1 2 3 4 5 6] <nil>
}
