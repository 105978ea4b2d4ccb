package host

import (
	"strings"
	"testing"

	"siafu/internal/fault"
)

// TestRequireMemory: a command that needs more memory than there is gets a fault with the need, the
// available memory and the remedy.
func TestRequireMemory(t *testing.T) {
	defer LimitMemory(5e6)()
	if err := RequireMemory("import", "a.csv", 4e6, ""); err != nil {
		t.Error(err)
	}
	err := RequireMemory("import", "a.csv", 6e6+1, "remove columns")
	const want = "import: a.csv: it needs about 7 MB of memory, but"
	if fault.KindOf(err) != fault.Config || !strings.HasPrefix(err.Error(), want) ||
		!strings.HasSuffix(err.Error(), "has 5 MB; remove columns") {
		t.Errorf("got %v", err)
	}
}
