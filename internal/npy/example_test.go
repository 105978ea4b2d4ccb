package npy_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"siafu/internal/npy"
)

func Example() {
	dir, err := os.MkdirTemp("", "npy")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "x.npy")

	file, _ := binary.Append(npy.Header("<f4", 2, 3), binary.LittleEndian, []float32{1, 2, 3, 4, 5, 6})
	err = os.WriteFile(path, file, 0o644)
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
