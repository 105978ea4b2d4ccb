package partition_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"siafu/graph"
	"siafu/graph/generate"
	"siafu/graph/partition"
	"siafu/graph/shard"
)

// If several processes need the same parts at once, one builds them and the others use them.
// Processes that request a rebuild, as the command does, each build them.
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
			_, _, errs[k] = partition.Place{Data: data}.Ensure(o, func(partition.Options) { begun.Add(1) })
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

// Requested shards are built next to existing ones, and found again. Without a request the
// first ones are used.
func TestSideBySide(t *testing.T) {
	data, root := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "[else]*where")
	if _, err := generate.Write(data, generate.Options{Vertices: 300, Edges: 2000, Features: 8, Classes: 3, Seed: 1}, false); err != nil {
		t.Fatal(err)
	}
	for _, place := range []partition.Place{{Data: data}, {Data: data, Root: root}} {
		base := cmp.Or(place.Root, filepath.Join(data, "parts"))
		for _, c := range []struct {
			method, order, folder string
			made                  bool
		}{
			{"ldg", "", "2", true},
			{"", "", "2", false},
			{"hash", "", "2-hash-auto-1", true},
			{"hash", "", "2-hash-auto-1", false},
			{"hash", "rabbit", "2-hash-rabbit-1", true},
			{"", "rabbit", "2-hash-rabbit-1", false},
			{"ldg", "", "2", false},
		} {
			folder, report, err := place.Ensure(partition.Options{Method: c.method, Order: c.order, Parts: 2, Seed: 1},
				func(partition.Options) {})
			if err != nil || folder != filepath.Join(base, c.folder) || (report != nil) != c.made {
				t.Errorf("%s %s: %s, made %v, %v; want %+v", c.method, c.order, folder, report != nil, err, c)
			}
			s, err := shard.OpenIn(folder, data, 2, 1)
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
		}
	}
	commanded(t, data, root)
	damaged := filepath.Join(root, "2-hash-rabbit-1", "meta.json")
	if err := os.Truncate(damaged, 20); err != nil {
		t.Fatal(err)
	}
	o := partition.Options{Method: "hash", Order: "rabbit", Parts: 2, Seed: 1}
	if folder, report, err := (partition.Place{Data: data, Root: root}).Ensure(o, func(partition.Options) {}); err != nil ||
		report == nil || folder != filepath.Dir(damaged) {
		t.Errorf("of a damaged folder: %s, made %v, %v", folder, report != nil, err)
	}
	if foreign, err := graph.Partitionings().Foreign(root); err != nil || foreign != "" {
		t.Errorf("%q is not known to be siafu's: %v", foreign, err)
	}
}

// Without a request, the shards of the last command are used. Earlier ones are moved to their
// own folder, for explicit requests. Each method is recognised by its edge cut.
func commanded(t *testing.T, data, root string) {
	t.Helper()
	place := partition.Place{Data: data, Root: root}
	for _, method := range []string{"contiguous", "ldg", "contiguous", "contiguous"} {
		o := partition.Options{Parts: 2, Method: method, Seed: 1, Root: root}
		if _, err := partition.Run(data, o); err != nil {
			t.Fatal(err)
		}
		for asked, want := range map[string]string{"": method, "ldg": "ldg", "contiguous": "contiguous", "hash": "hash"} {
			folder, made, err := place.Ensure(partition.Options{Parts: 2, Method: asked, Seed: 1}, func(partition.Options) {})
			if asked == "contiguous" && err == nil && made != nil && method == "ldg" {
				t.Errorf("contiguous was made again behind %s", method)
			}
			if m := place.Made(partition.Options{Parts: 2, Method: asked}); err != nil || m == nil || m.Method != want {
				t.Errorf("%q behind %s: %s, %+v, %v", asked, method, folder, m, err)
			}
		}
	}
	if entries, _ := filepath.Glob(filepath.Join(root, ".*")); len(entries) != 0 {
		t.Errorf("left behind: %q", entries[0])
	}
}
