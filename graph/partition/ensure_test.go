package partition_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"siafu/graph/generate"
	"siafu/graph/partition"
	"siafu/graph/shard"
)

// Of those who need parts of a dataset at once one makes them and the others use these;
// those who want them made anew, as the command does, all have them made.
func TestTogether(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if _, err := generate.Write(data, generate.Options{Vertices: 3000, Edges: 20000, Features: 8, Classes: 3, Seed: 1}, false); err != nil {
		t.Fatal(err)
	}
	var begun atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, 8)
	for k := range errs {
		all.Go(func() {
			o := partition.Options{Parts: 3, Method: "hash", Seed: 1}
			if k > 5 {
				o.Parts = 2
				_, errs[k] = partition.Run(data, o)
				return
			}
			_, errs[k] = partition.Ensure(data, o, func(partition.Options) { begun.Add(1) })
			if s, err := shard.Open(data, 3, k%3); err != nil {
				errs[k] = fmt.Errorf("%v; %v", errs[k], err)
			} else {
				s.Close()
			}
		})
	}
	all.Wait()
	for k, err := range errs {
		if err != nil {
			t.Errorf("%d: %v", k, err)
		}
	}
	if begun.Load() != 1 {
		t.Errorf("it was divided %d times", begun.Load())
	}
}
