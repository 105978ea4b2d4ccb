package partition_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"siafu/graph"
	"siafu/graph/partition"
)

// Two triangles with one edge between them make two parts of one triangle each.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	set := filepath.Join(dir, "triangles")
	if _, err := graph.Write(set, graph.Content{
		Name: "triangles", Vertices: 6, Symmetrise: true,
		Edges:    graph.EdgePairs{0, 1, 1, 2, 2, 0, 3, 4, 4, 5, 5, 3, 2, 3},
		Features: graph.Features{Rows: 6, Dim: 1, Dense: make([]float32, 6)},
		Labels:   []int32{0, 0, 0, 1, 1, 1}, Split: []uint8{1, 2, 3, 1, 2, 3},
	}, false); err != nil {
		log.Fatal(err)
	}
	report, err := partition.Run(set, partition.Options{Method: "contiguous", Parts: 2})
	if err != nil {
		log.Fatal(err)
	}
	report.Order.Seconds = 0 // it differs from run to run
	fmt.Print(report)
	// Output:
	// contiguous, 2 parts of 6 vertices and 14 edges
	// edge cut 14.3% (2 edges), 2 ghosts (0.33 a vertex)
	// balance (largest/mean): vertices 1.000, edges 1.000, train 1.000
	// a hidden layer of 128 sends 0.00205 MB per epoch (ghosts x 4 bytes x 128, forward and backward)
	// vertex order natural, computed in 0.00 s: estimated cache misses of a gather 42.9% of edges, in the dataset's order 42.9%
	//   rank  vertices  edges  cut  ghosts  train  send rows
	//      0         3      7    1       1      1          1
	//      1         3      7    1       1      1          1
}
