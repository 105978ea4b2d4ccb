package checkpoint_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"siafu/internal/safetensors"
	"siafu/ranks/checkpoint"
	"siafu/ranks/runfolder"
)

// A run saves, stops, and is found again.
func Example() {
	run, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(run)
	lock, err := runfolder.Acquire(run, "", 0)
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Release()

	dir := filepath.Join(run, checkpoint.Dir)
	weights := []safetensors.Tensor{{Name: "layers.0.weight", Shape: []int{1, 2}, Data: []float32{0.5, -1}}}
	for _, epoch := range []int{20, 40, 60} {
		if _, err := checkpoint.Save(dir, checkpoint.State{Epoch: epoch, Weights: weights}, nil); err != nil {
			log.Fatal(err)
		}
		if _, err := checkpoint.Prune(dir, 2, epoch); err != nil {
			log.Fatal(err)
		}
	}
	s, _, err := checkpoint.Open(run)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Epoch, s.Weights[0].Data)
	// Output: 60 [0.5 -1]
}
