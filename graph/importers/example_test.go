package importers_test

import (
	"fmt"
	"os"
	"path/filepath"

	"siafu/graph/importers"
	"siafu/graph/npy"
)

func Example() {
	dir, err := os.MkdirTemp("", "import")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	// A triangle of users 10, 20 and 30.
	os.WriteFile(filepath.Join(dir, "edges.txt"), []byte("10 20\n20 30\n30 10\n"), 0o644)
	npy.WriteFloat32s(filepath.Join(dir, "features.npy"), []int{3, 2}, []float32{1, 0, 0, 1, 1, 1})
	npy.WriteInt64s(filepath.Join(dir, "labels.npy"), []int{3}, []int64{0, 1, 1})

	report, err := importers.Import("auto", importers.Options{
		Src: dir, Dst: filepath.Join(dir, "dataset"), Symmetrise: true,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(report.Vertices, report.Edges, report.Directed)
	// Output: 3 6 false
}
