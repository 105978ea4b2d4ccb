package shard_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/graph/shard"
)

// A path 0-1-2-3 cut in the middle: rank 1 owns 2 and 3, and gathers from 1.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	set := filepath.Join(dir, "path")
	if _, err := graph.Write(set, graph.Content{
		Name: "path", Vertices: 4, Edges: graph.EdgePairs{0, 1, 1, 2, 2, 3}, Symmetrise: true,
		Features: graph.Features{Rows: 4, Dim: 1, Dense: []float32{1, 2, 3, 4}},
		Labels:   []int32{0, 0, 1, 1}, Split: []uint8{1, 2, 3, 1},
	}, false); err != nil {
		log.Fatal(err)
	}
	if _, err := partition.Run(set, partition.Options{Method: "contiguous", Parts: 2}); err != nil {
		log.Fatal(err)
	}
	s, err := shard.Open(set, 2, 1)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	fmt.Println("own", s.Own, "ghosts", s.Ghosts, "sends rows", s.SendRows)
	fmt.Println("sources of", s.Own[0], "as local ids:", s.In.Row(0))
	// Output:
	// own [2 3] ghosts [1] sends rows [0]
	// sources of 2 as local ids: [1 2]
}
