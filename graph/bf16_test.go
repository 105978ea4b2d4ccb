package graph

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/internal/fault"
)

// halfContent returns vertices without edges, with features x of two columns.
func halfContent(x ...float32) Content {
	n := len(x) / 2
	return Content{Name: "half", Vertices: int64(n), Edges: EdgePairs{}, FeatureFormat: Bfloat16,
		Features: Features{Rows: n, Dim: 2, Dense: x}, Labels: make([]int32, n), Split: make([]uint8, n)}
}

// stored writes a content and opens it.
func stored(t *testing.T, c Content) *Dataset {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "half")
	if _, err := Write(dir, c, false); err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// Features in bfloat16 are rounded to nearest even, after normalisation, and meta.json describes the
// rounded numbers. Features in bfloat16 are written again unchanged.
func TestHalfFeatures(t *testing.T) {
	x := []float32{1.00390625, 3, -2.01171875, 1e-40, 0, 5} // the first and third are ties
	want := []BF16{0x3f80, 0x4040, 0xc001, 0x0001, 0, 0x40a0}
	drawn := halfContent(x...)
	drawn.Features.Dense, drawn.Features.Draw = nil, func(to []float32, first int) { copy(to, x[2*first:]) }
	for name, c := range map[string]Content{"dense": halfContent(x...), "drawn": drawn} {
		d := stored(t, c)
		if !slices.Equal(d.Features.Half, want) || d.Features.Dense != nil {
			t.Errorf("%s: stored %x, want %x", name, d.Features.Half, want)
		}
		if m := d.Meta; m.Format != HalfFormat || m.FeatureKind != HalfFeatures || m.FeatureNNZ != 5 {
			t.Errorf("%s: format %d, kind %s, %d non-zeros", name, m.Format, m.FeatureKind, m.FeatureNNZ)
		}
		if name == "dense" {
			norm := math.Sqrt((1 + 9 + 2.015625*2.015625 + 25) / 3) // 1e-40 is below the unit of its square
			if math.Abs(d.Meta.FeatureNorm-norm) > 1e-12 {
				t.Errorf("norm %v, want %v", d.Meta.FeatureNorm, norm)
			}
		}
		c.Features = d.Features
		if again := stored(t, c); !slices.Equal(again.Features.Half, want) {
			t.Errorf("%s: written again as %x", name, again.Features.Half)
		}
	}
	c := halfContent(1, 2, 1, 0)
	c.Normalize = true
	if d := stored(t, c); !slices.Equal(d.Features.Half, []BF16{Narrow(1. / 3), Narrow(2. / 3), 0x3f80, 0}) {
		t.Errorf("normalised: %x", d.Features.Half)
	}
	if d := stored(t, halfContent(1, 0, 0, 0, 0, 0)); d.Features.Sparse == nil || d.Meta.Format != FormatVersion {
		t.Errorf("sparse features have the kind %s and format %d", d.Meta.FeatureKind, d.Meta.Format)
	}
}

// A number above the largest bfloat16 is refused, and so is a folder with another format.
func TestHalfFeaturesAreRefused(t *testing.T) {
	drawn := halfContent(0, 0)
	drawn.Features.Dense, drawn.Features.Draw = nil, func(to []float32, _ int) { to[1] = math.MaxFloat32 }
	for name, c := range map[string]Content{"dense": halfContent(0, math.MaxFloat32), "drawn": drawn} {
		_, err := Write(filepath.Join(t.TempDir(), "half"), c, false)
		if fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), "feature 1 of vertex 0") {
			t.Errorf("%s: %v", name, err)
		}
	}
	m := *stored(t, halfContent(1, 2)).Meta
	m.Format = EdgeFormat
	if err := m.check(); err == nil || !strings.Contains(err.Error(), "its format is 3") {
		t.Errorf("bfloat16 in format 3: %v", err)
	}
}
