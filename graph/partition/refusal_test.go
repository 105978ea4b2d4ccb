package partition

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"siafu/graph/shard"
	"siafu/internal/fault"
	"siafu/internal/host"
)

// TestMemoryFirst: a partitioning that does not fit into memory is refused before it begins.
func TestMemoryFirst(t *testing.T) {
	ds := onDisk(t, ring(20_000))
	defer host.LimitMemory(1 << 20)()
	_, err := Run(ds.Dir, Options{Parts: 2, Method: "multilevel"})
	expect(t, err, fault.Config, "MB of memory, but", "use a machine with more memory")
}

// TestChangedNumbers: the counts of parts/P/meta.json determine allocations of other commands, so that
// no number in the file can be changed without a fault.
func TestChangedNumbers(t *testing.T) {
	ds := onDisk(t, ring(30))
	if _, err := Run(ds.Dir, Options{Parts: 2, Method: "hash"}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(shard.Folder(ds.Dir, 2), metaName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Find(ds.Dir, 2); err != nil {
		t.Fatal(err)
	}
	numbers := regexp.MustCompile(`[:\[ ]\d[\d.]*\b`).FindAllIndex(text, -1)
	if len(numbers) < 40 {
		t.Fatalf("there are only %d numbers", len(numbers))
	}
	for _, at := range numbers {
		for _, to := range []string{"77", "-1"} {
			changed := string(text[:at[0]+1]) + to + string(text[at[1]:])
			if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := Find(ds.Dir, 2)
			expect(t, err, fault.Data, `run "siafu partition" again`)
		}
	}
}
