package cli

import (
	"os"
	"path/filepath"
	"testing"

	"siafu/internal/testkit/hosttest"
)

// The first ten minutes of users, as the pages have them. What needs a cluster is followed
// in package slurm.
func TestTutorials(t *testing.T) {
	pages, err := filepath.Glob("docs/tutorials/*.md")
	if err != nil || len(pages) < 3 {
		t.Fatal(pages, err)
	}
	program := hosttest.Go(t, "siafu", "siafu", "")
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range hosttest.ShareOf(t, 2, pages) {
		if filepath.Base(page) == "slurm-array.md" {
			continue
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.Symlink(filepath.Join(root, "graph/importers/testdata/data.pt"), "data.pt"); err != nil {
				t.Fatal(err)
			}
			hosttest.Follow(t, filepath.Join(root, page), program)
		})
	}
}
