package graph

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/testkit/decodertest"
)

// TestMetaClaims: whichever number of meta.json is a lie, with a checksum that is
// right, opening the dataset takes no more memory than its files can fill; and
// what other commands size their arrays by is proven by the folder's bytes.
func TestMetaClaims(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := Write(dir, five(), false); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, metaFile)
	honest, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for lie := range decodertest.Lies(honest) {
		var m Meta
		if json.Unmarshal(lie, &m) != nil {
			continue
		}
		if m.Checksum, err = m.sum(); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		decodertest.Bounded(t, 1<<16, func() {
			d, err := Open(dir)
			if err != nil {
				refused++
				if fault.KindOf(err) != fault.Data {
					t.Errorf("%v", err)
				}
				return
			}
			defer d.Close()
			if d.Meta.Vertices != 5 || d.Meta.Classes != 2 || d.Meta.FeatureDim != 2 {
				t.Errorf("%d vertices, %d classes and %d features are believed", d.Meta.Vertices, d.Meta.Classes, d.Meta.FeatureDim)
			}
		})
		if t.Failed() {
			t.Fatalf("with %s", lie)
		}
	}
	if refused < 20 {
		t.Errorf("%d lies are refused", refused)
	}
}

// TestWide: rows so wide that only a few go to the file together.
func TestWide(t *testing.T) {
	c := Content{Name: "wide", Vertices: 1, Edges: EdgePairs{}, Labels: []int32{0}, Split: []uint8{1}}
	c.Features = Features{Rows: 1, Dim: 1 << 20, Dense: make([]float32, 1<<20)}
	for i := range c.Features.Dense {
		c.Features.Dense[i] = float32(i)
	}
	dir := filepath.Join(t.TempDir(), "data")
	decodertest.Bounded(t, 4<<20, func() {
		if _, err := Write(dir, c, false); err != nil {
			t.Fatal(err)
		}
	})
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Features.Dense[1<<20-1] != 1<<20-1 {
		t.Error("the last value is lost")
	}
}
