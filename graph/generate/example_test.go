package generate_test

import (
	"fmt"
	"os"
	"path/filepath"

	"siafu/graph/generate"
)

func ExampleWrite() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	report, err := generate.Write(filepath.Join(dir, "arxiv"), generate.Options{Like: "ogbn-arxiv", Scale: 0.01}, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Vertices)
	// Output: 1693
}
