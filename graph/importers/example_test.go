package importers_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"siafu/graph/importers"
	"siafu/internal/npy"
)

func Example() {
	dir, err := os.MkdirTemp("", "import")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	// A triangle of users 10, 20 and 30.
	os.WriteFile(filepath.Join(dir, "edges.txt"), []byte("10 20\n20 30\n30 10\n"), 0o644)
	features, _ := binary.Append(npy.Header("<f4", 3, 2), binary.LittleEndian, []float32{1, 0, 0, 1, 1, 1})
	os.WriteFile(filepath.Join(dir, "features.npy"), features, 0o644)
	labels, _ := binary.Append(npy.Header("<i8", 3), binary.LittleEndian, []int64{0, 1, 1})
	os.WriteFile(filepath.Join(dir, "labels.npy"), labels, 0o644)

	report, err := importers.Import("auto", importers.Options{
		Src: dir, Dst: filepath.Join(dir, "dataset"), Symmetrise: true,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(report.Vertices, report.Edges, report.Directed)
	// Output: 3 6 false
}
