package predictions

import (
	"os"
	"path/filepath"
	"testing"

	"siafu/internal/fault"
)

// Unfinished files of a killed prediction do not prevent another one. Foreign files are not
// overwritten.
func TestPredictionsAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "p")
	o := Options{Dir: dir, CSV: true}
	killed := &Files{Options: o, isWriter: true}
	killed.layout(10, 3)
	if err := killed.create(10); err != nil {
		t.Fatal(err)
	}
	if err := o.Vet(); err != nil {
		t.Errorf("half written: %v", err)
	}
	foreign := filepath.Join(dir, IDFile)
	if err := os.WriteFile(foreign, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := o.Vet(); fault.KindOf(err) != fault.Usage {
		t.Errorf("ids of somebody's: %v", err)
	}
	if err := killed.mark(IDFile); err != nil {
		t.Fatal(err)
	}
	if err := o.Vet(); err != nil {
		t.Errorf("ids of siafu's: %v", err)
	}
	killed.Abort()
	if marker(dir) == nil {
		t.Error("the marker is gone although files are there")
	}
}
