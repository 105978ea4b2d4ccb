package graph

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"siafu/internal/fault"
	"siafu/internal/mapped"
)

// five returns a small content that is right.
func five() Content {
	return Content{
		Name: "five", Vertices: 5, Edges: EdgePairs{0, 1, 1, 2, 2, 1, 3, 3, 0, 1},
		Features: Features{Rows: 5, Dim: 2, Dense: []float32{1, 3, 0, 0, 2, 2, 5, 0, 1, 1}},
		Labels:   []int32{0, 1, 0, 1, -1}, Split: []uint8{1, 2, 3, 1, 0},
	}
}

// What is read is what was written: edges as a set without self loops, in both
// directions where that was asked for, features, labels, split and ids, for
// any small graph, sparse or dense, directed or not, in one window or several.
func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "vertices")
		dim := rapid.IntRange(1, 6).Draw(t, "dim")
		c := Content{
			Name: "random", Vertices: int64(n), Classes: 3, Symmetrise: rapid.Bool().Draw(t, "symmetrise"),
			Features: Features{Rows: n, Dim: dim, Dense: make([]float32, n*dim)},
			Labels:   make([]int32, n), Split: make([]uint8, n),
			EdgeMemory: 4 * rapid.Int64Range(0, 20).Draw(t, "window"), // in edges; 0 is all
		}
		var pairs EdgePairs
		want := map[[2]uint32]bool{}
		for range rapid.IntRange(0, 40).Draw(t, "edges") {
			s, d := rapid.Uint32Range(0, uint32(n-1)).Draw(t, "src"), rapid.Uint32Range(0, uint32(n-1)).Draw(t, "dst")
			pairs = append(pairs, s, d)
			if s != d {
				want[[2]uint32{s, d}] = true
				if c.Symmetrise {
					want[[2]uint32{d, s}] = true
				}
			}
		}
		c.Edges = pairs
		fill := rapid.IntRange(0, 4).Draw(t, "fill")
		for i := range c.Features.Dense {
			if rapid.IntRange(0, 4).Draw(t, "full") < fill {
				c.Features.Dense[i] = rapid.Float32Range(-9, 9).Draw(t, "x")
			}
		}
		for v := range n {
			c.Labels[v] = int32(rapid.IntRange(-1, 2).Draw(t, "label"))
			if c.Labels[v] >= 0 {
				c.Split[v] = uint8(rapid.IntRange(0, 3).Draw(t, "split"))
			}
		}
		c.Labels[0] = 0
		if rapid.Bool().Draw(t, "ids") {
			c.IDs = &IDs{Ints: make([]int64, n)}
			for v := range n {
				c.IDs.Ints[v] = int64(v)*7 - 3
			}
		}
		report, err := Write(dir, c, true)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if report.Edges != int64(len(want)) || d.Meta.Edges != report.Edges {
			t.Fatalf("%d edges, want %d", report.Edges, len(want))
		}
		compareEdges(t, d, want)
		compareFeatures(t, d, c)
		if !slices.Equal(d.Labels, c.Labels) || !slices.Equal(d.Split, c.Split) {
			t.Fatalf("labels %v split %v", d.Labels, d.Split)
		}
		for v := range n {
			if d.IDs.At(v) != c.IDs.At(v) {
				t.Fatalf("vertex %d is called %s, want %s", v, d.IDs.At(v), c.IDs.At(v))
			}
		}
	})
}

func compareEdges(t *rapid.T, d *Dataset, want map[[2]uint32]bool) {
	directed := false
	for e := range want {
		directed = directed || !want[[2]uint32{e[1], e[0]}]
	}
	if d.Meta.Directed != directed {
		t.Fatalf("directed: %t, want %t", d.Meta.Directed, directed)
	}
	for v := range d.In.Rows() {
		if !slices.IsSorted(d.In.Row(v)) || !slices.IsSorted(d.Out.Row(v)) {
			t.Fatalf("row %d is not sorted", v)
		}
		for _, u := range d.In.Row(v) {
			if !want[[2]uint32{u, uint32(v)}] {
				t.Fatalf("edge %d → %d should not be there", u, v)
			}
			if !slices.Contains(d.Out.Row(int(u)), uint32(v)) {
				t.Fatalf("edge %d → %d is in one direction only", u, v)
			}
		}
	}
}

func compareFeatures(t *rapid.T, d *Dataset, c Content) {
	dim := c.Features.Dim
	got := make([]float32, len(c.Features.Dense))
	copy(got, d.Features.Dense)
	for v := range d.Features.Rows {
		d.Features.row(v, func(col uint32, x float32) { got[v*dim+int(col)] = x })
	}
	if d := cmp.Diff(c.Features.Dense, got); d != "" {
		t.Fatal(d)
	}
	sparse := float64(c.Features.nonZeros()) < 0.25*float64(len(got))
	if (d.Features.Sparse != nil) != sparse {
		t.Fatalf("stored sparse: %t, want %t", d.Features.Sparse != nil, sparse)
	}
}

func TestTrains(t *testing.T) {
	for _, m := range []Meta{{Classes: 2}, {Task: Links}} {
		if err := m.Trains("train", "data"); err != nil {
			t.Error(err)
		}
	}
	if err := new(Meta).Trains("train", "data"); fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), "siafu holdout") {
		t.Error(err)
	}
}

func TestCounts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "five")
	got, err := Write(dir, five(), false)
	if err != nil {
		t.Fatal(err)
	}
	want := &WriteReport{Vertices: 5, Edges: 3, Duplicates: 1, SelfLoops: 1, Isolated: 2, Unlabelled: 1, Train: 2,
		Val: 1, Test: 1, Directed: true}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestMergedEdges: meta.json counts edges that other programs use and Write drops or merges. Edges to symmetrise may
// be listed in both directions, and some sources have loops that nobody uses.
func TestMergedEdges(t *testing.T) {
	for _, c := range []struct {
		set             func(*Content)
		loops, repeated int64
	}{
		{func(*Content) {}, 1, 1},
		{func(c *Content) { c.Symmetrise = true }, 1, 0},
		{func(c *Content) { c.LoopsUnused = true }, 0, 1},
		{func(c *Content) { c.SelfLoops, c.Repeated = 3, 4 }, 4, 5},
	} {
		content, dir := five(), filepath.Join(t.TempDir(), "five")
		c.set(&content)
		if _, err := Write(dir, content, false); err != nil {
			t.Fatal(err)
		}
		if m, err := ReadMeta(dir); err != nil || m.SelfLoops != c.loops || m.Repeated != c.repeated {
			t.Errorf("%d loops and %d repeated edges, want %d and %d: %v", m.SelfLoops, m.Repeated, c.loops, c.repeated, err)
		}
	}
}

// changing yields other edges at the second reading.
type changing struct {
	EdgePairs
	later EdgePairs
	read  bool
}

func (c *changing) Each(yield func(src, dst uint32) error) error {
	if c.read {
		return c.later.Each(yield)
	}
	c.read = true
	return c.EdgePairs.Each(yield)
}

// Edges that are others when they are read again are a fault, whether a row has more
// of them, fewer, or ends that no vertex has.
func TestChangingEdges(t *testing.T) {
	first := EdgePairs{0, 1, 2, 1, 3, 4}
	for _, later := range []EdgePairs{{0, 1, 2, 1}, {0, 1, 2, 1, 3, 4, 3, 2}, {0, 1, 2, 4, 3, 4},
		{0, 1, 9, 1, 3, 4}, {0, 1, 2, 1, 3, 4, 0, 4}} {
		for _, memory := range []int64{0, 8} {
			c := five()
			c.Edges, c.EdgeMemory = &changing{EdgePairs: first, later: later}, memory
			if _, err := Write(filepath.Join(t.TempDir(), "data"), c, false); err == nil ||
				!strings.Contains(err.Error(), "changed between two passes") {
				t.Errorf("%v with %d bytes: %v", later, memory, err)
			}
		}
	}
}

// Rows are divided by their sums; a row of zeros stays one.
func TestNormalize(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "five")
	c := five()
	c.Normalize = true
	if _, err := Write(dir, c, false); err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if diff := cmp.Diff([]float32{0.25, 0.75, 0, 0, 0.5, 0.5, 1, 0, 0.5, 0.5}, d.Features.Dense); diff != "" || !d.Meta.Normalized {
		t.Error(diff)
	}
}

// Every wrong content is a Data fault that says where and what, and leaves
// nothing.
func TestInvalid(t *testing.T) {
	nan := float32(math.NaN())
	sparse := func(s SparseRows) func(*Content) {
		return func(c *Content) { c.Features = Features{Rows: 5, Dim: 4, Sparse: &s} }
	}
	rows := []int64{0, 1, 2, 2, 2, 2}
	for _, tc := range []struct {
		name string
		harm func(*Content)
		says string
	}{
		{"no vertices", func(c *Content) { c.Vertices = 0 }, "0 vertices"},
		{"too many vertices", func(c *Content) { c.Vertices = 1 << 32 }, "4294967296 vertices"},
		{"edge source", func(c *Content) { c.Edges = EdgePairs{0, 1, 5, 1} }, "edge 1 is 5 → 1"},
		{"edge destination", func(c *Content) { c.Edges = EdgePairs{0, 9} }, "edge 0 is 0 → 9"},
		{"labels", func(c *Content) { c.Labels = c.Labels[:4] }, "4 labels for 5 vertices"},
		{"label too large", func(c *Content) { c.Classes = 2; c.Labels[2] = 2 }, "vertex 2 has label 2 of 2 classes"},
		{"label too small", func(c *Content) { c.Labels[1] = -2 }, "vertex 1 has label -2"},
		{"split", func(c *Content) { c.Split = c.Split[:3] }, "3 split values for 5"},
		{"split value", func(c *Content) { c.Split[3] = 4 }, "vertex 3 has split value 4"},
		{"split without label", func(c *Content) { c.Split[4] = 1 }, "vertex 4 is in split 1 and has no label"},
		{"feature rows", func(c *Content) { c.Features.Rows = 4 }, "4 feature rows for 5"},
		{"no features", func(c *Content) { c.Features.Dim = 0 }, "dimension 0"},
		{"feature values", func(c *Content) { c.Features.Dense = c.Features.Dense[:9] }, "9 feature values for 5 rows of 2"},
		{"NaN", func(c *Content) { c.Features.Dense[5] = nan }, "feature 1 of vertex 2 is NaN"},
		{"infinity", func(c *Content) { c.Features.Dense[0] = float32(math.Inf(-1)) }, "feature 0 of vertex 0 is -Inf"},
		{"negative feature", func(c *Content) { c.Normalize = true; c.Features.Dense[0] = -3 },
			"vertex 0 has the feature -3: rows with negative numbers cannot be divided by their sums"},
		{"sparse column", sparse(SparseRows{rows, []uint32{1, 4}, []float32{1, 1}}), "vertex 1 has feature column 4 of 4"},
		{"sparse duplicate", sparse(SparseRows{[]int64{0, 2, 2, 2, 2, 2}, []uint32{1, 1}, []float32{1, 1}}),
			"vertex 0 has feature column 1 after 1"},
		{"sparse NaN", sparse(SparseRows{rows, []uint32{1, 2}, []float32{1, nan}}), "feature 2 of vertex 1 is NaN"},
		{"sparse offsets", sparse(SparseRows{[]int64{0, 3, 2, 2, 2, 2}, []uint32{1, 2}, []float32{1, 1}}), "row offsets"},
		{"ids", func(c *Content) { c.IDs = &IDs{Ints: []int64{1}} }, "1 ids for 5"},
		{"class names", func(c *Content) { c.ClassNames = []string{"a"} }, "1 class names for 2 classes"},
		{"more classes than can be", func(c *Content) { c.Classes = 1e12 }, "1000000000000 classes for 5 vertices"},
		{"a stray label", func(c *Content) { c.Labels[0] = math.MaxInt32 - 1 }, "2147483647 classes for 5 vertices"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, parent := five(), t.TempDir()
			tc.harm(&c)
			_, err := Write(filepath.Join(parent, "five"), c, false)
			if fault.KindOf(err) != fault.Data || !strings.Contains(fmt.Sprint(err), tc.says) {
				t.Errorf("%v; want %q", err, tc.says)
			}
			if left, _ := os.ReadDir(parent); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// fickle yields other edges each time.
type fickle struct{ calls int }

func (f *fickle) Each(yield func(src, dst uint32) error) error {
	f.calls++
	return yield(0, uint32(f.calls))
}

func TestEdgesThatChange(t *testing.T) {
	c := five()
	c.Edges = &fickle{}
	if _, err := Write(filepath.Join(t.TempDir(), "five"), c, false); err == nil ||
		!strings.Contains(err.Error(), "changed between two passes") {
		t.Errorf("%v", err)
	}
}

// Offsets past 2³¹ work: a CSR whose columns are a file of 9 GB that is all
// hole but for the rows that are looked at.
func TestOffsetsPast2To31(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cols")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const edges = int64(1)<<31 + 100
	if err := unix.Ftruncate(int(f.Fd()), 4*edges); err != nil {
		t.Skipf("a file with a large hole cannot be made here: %v", err)
	}
	for _, e := range []int64{1<<31 - 1, 1 << 31, edges - 1} {
		if _, err := f.WriteAt(mapped.Bytes([]uint32{uint32(e % 1000)}), 4*e); err != nil {
			t.Skipf("a file with a large hole cannot be written here: %v", err)
		}
	}
	m, err := mapped.OpenFile(path)
	if err != nil {
		t.Skipf("a large file cannot be mapped here: %v", err)
	}
	defer m.Close()
	c := CSR{Offsets: []int64{0, 1<<31 - 1, 1<<31 + 1, edges - 1, edges}, Cols: mapped.Cast[uint32](m.Bytes())}
	if got := c.Row(1); len(got) != 2 || got[0] != uint32((1<<31-1)%1000) || got[1] != uint32((1<<31)%1000) {
		t.Errorf("row 1 is %v", got)
	}
	if got := c.Row(3); len(got) != 1 || got[0] != uint32((edges-1)%1000) {
		t.Errorf("row 3 is %v", got)
	}
	if v := badOffset(c.Offsets, edges); v != -1 {
		t.Errorf("offset %d is called bad", v)
	}
	if v := badOffset([]int64{0, 1 << 33, 1 << 32}, 1<<32); v != 1 {
		t.Errorf("the bad offset is found at %d", v)
	}
}
