package generate

import (
	"path/filepath"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/host"
)

// TestMemoryFirst: a graph whose vertices do not fit into memory is refused before anything is
// allocated or written.
func TestMemoryFirst(t *testing.T) {
	defer host.LimitMemory(1 << 20)()
	dir := filepath.Join(t.TempDir(), "g")
	_, err := Write(dir, Options{Vertices: 100_000, Edges: 1000, Features: 4, Classes: 2, Homophily: 0.8}, false)
	if fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "set fewer --vertices") {
		t.Errorf("got %v", err)
	}
}
