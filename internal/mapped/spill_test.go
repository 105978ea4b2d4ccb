package mapped_test

import (
	"os"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/mapped"
)

// Arrays of a spilled purpose are zeroed and disjoint parts of one file, which has no name. Other and
// short arrays are not in the file.
func TestSpill(t *testing.T) {
	dir, a := t.TempDir(), mapped.NewArena()
	a.Spill(dir, "rows")
	const n = 1 << 20
	arrays := [][]float32{
		mapped.Make[float32](a.For("rows"), n), mapped.Make[float32](a.Like().For("rows"), n),
		mapped.Make[float32](a.For("rows"), n), mapped.Make[float32](a, n),
	}
	mapped.Make[float32](a.For("rows"), 10)
	if got := a.Spilled(); got != 2*4*n {
		t.Errorf("the file has %d bytes, want %d", got, 2*4*n)
	}
	for k, x := range arrays {
		for i := range x {
			if x[i] != 0 {
				t.Fatalf("array %d is not zeroed", k)
			}
			x[i] = float32(k + 1)
		}
	}
	for k, x := range arrays {
		if x[0] != float32(k+1) || x[n-1] != float32(k+1) {
			t.Errorf("array %d is overwritten", k)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("files in the folder: %v, %v", list, err)
	}
	a.Free()
	if a.Spilled() != 0 {
		t.Error("the file still has arrays")
	}
}

// A missing folder, and a disk without enough space, are faults of kind IO that name the folder.
func TestSpillFails(t *testing.T) {
	full := t.TempDir()
	for name, at := range map[string]struct {
		dir   string
		bytes int
	}{"missing": {full + "/none", 1 << 20}, "full": {full, 1 << 58}} {
		a := mapped.NewArena()
		a.Spill(at.dir, "rows")
		err := func() (err error) {
			defer mapped.Catch(&err)
			mapped.Make[uint8](a.For("rows"), at.bytes)
			return nil
		}()
		if fault.KindOf(err) != fault.IO || !strings.Contains(err.Error(), at.dir) {
			t.Errorf("%s: %v", name, err)
		}
		a.Free()
	}
}
