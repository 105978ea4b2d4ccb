package partition

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/internal/npy"
	"siafu/internal/testkit/decodertest"
)

// hubs returns an undirected graph of communities of 50 vertices, in which every hundredth vertex
// is a hub. Ids of a community are not adjacent.
func hubs(n int) *graph.Dataset {
	var edges [][2]uint32
	group := n / 50
	for v := range n {
		for i := range 4 {
			u := (v + group*(1+int(mix(uint64(i), uint64(v))%49))) % n
			edges = append(edges, [2]uint32{uint32(v), uint32(u)})
		}
		for i := 0; v%100 == 0 && i < 200; i++ {
			edges = append(edges, [2]uint32{uint32(v), uint32(mix(uint64(v), uint64(i)) % uint64(n))})
		}
	}
	return memory(n, false, false, edges)
}

// loads counts vertices and in-edges of each part, and cut edges.
func loads(ds *graph.Dataset, owner []uint32, parts int) (vertices, edges []int, cut float64) {
	vertices, edges = make([]int, parts), make([]int, parts)
	for v, p := range owner {
		vertices[p]++
		for _, u := range ds.In.Row(v) {
			edges[p]++
			if owner[u] != p {
				cut++
			}
		}
	}
	return vertices, edges, cut / float64(len(ds.In.Cols))
}

func imbalance(counts []int) float64 {
	total := 0
	for _, c := range counts {
		total += c
	}
	return float64(slices.Max(counts)) * float64(len(counts)) / float64(total)
}

func TestAssignBalances(t *testing.T) {
	ds := hubs(10000)
	type bounds struct {
		vertices, edges float64 // upper bound of largest over mean
		cut             float64 // at most
	}
	known := map[string]bounds{
		"contiguous": {1.2, 1.2, 1},
		"hash":       {1.1, 1.3, 1},
		"ldg":        {1.051, 1.051, 0.72},
		"fennel":     {1.051, 1.051, 0.72},
		"multilevel": {1.051, 1.051, 0.6},
	}
	for _, m := range methods {
		t.Run(m.Name, func(t *testing.T) {
			c, ok := known[m.Name]
			switch {
			case !ok && m.slack:
				c = bounds{1.051, 1.051, 1}
			case !ok: // it promises no balance
				c = bounds{8, 8, 1}
			}
			o := Options{Method: m.Name, Parts: 8, Seed: 3}
			owner, err := Assign(ds, o)
			if err != nil {
				t.Fatal(err)
			}
			v, e, cut := loads(ds, owner, 8)
			if imbalance(v) > c.vertices || imbalance(e) > c.edges || cut > c.cut {
				t.Errorf("vertices %.3f, edges %.3f, cut %.3f; at most %v", imbalance(v), imbalance(e), cut, c)
			}
			if again, _ := Assign(ds, o); !slices.Equal(owner, again) {
				t.Error("a second call assigns differently")
			}
		})
	}
}

func TestHashDependsOnSeed(t *testing.T) {
	if slices.Equal(hashed(100, 4, 1), hashed(100, 4, 2)) {
		t.Error("two seeds give one assignment")
	}
}

// Blocks ascend, and none is empty even if one vertex has all the edges.
func TestContiguousLeavesNoBlockEmpty(t *testing.T) {
	var star [][2]uint32
	for v := range uint32(20) {
		star = append(star, [2]uint32{v, 0})
	}
	for _, parts := range []int{1, 2, 5, 19, 20} {
		owner, err := Assign(memory(20, true, false, star), Options{Method: "contiguous", Parts: parts})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(owner) || len(slices.Compact(owner)) != parts {
			t.Errorf("%d parts: %v", parts, owner)
		}
	}
}

// More passes must not make the cut worse by more than noise, and a graph that
// has no edges at all is still divided evenly.
func TestStreamPasses(t *testing.T) {
	ds := hubs(10000)
	var cuts []float64
	for _, passes := range []int{1, 3} {
		owner, err := Assign(ds, Options{Method: "fennel", Parts: 4, Passes: passes})
		if err != nil {
			t.Fatal(err)
		}
		_, _, cut := loads(ds, owner, 4)
		cuts = append(cuts, cut)
	}
	if cuts[1] >= cuts[0] {
		t.Errorf("cut %.3f after one pass, %.3f after three", cuts[0], cuts[1])
	}
	owner, err := Assign(memory(40, false, false, nil), Options{Method: "fennel", Parts: 4})
	if err != nil {
		t.Fatal(err)
	}
	if v, _, _ := loads(memory(40, false, false, nil), owner, 4); slices.Max(v) != 10 {
		t.Errorf("40 vertices without edges are divided as %v", v)
	}
}

func TestAssignErrors(t *testing.T) {
	ds := memory(3, false, false, nil)
	for name, c := range map[string]struct {
		o    Options
		kind fault.Kind
		want string
	}{
		"no parts":        {Options{Parts: 0}, fault.Usage, "0 parts"},
		"negative parts":  {Options{Parts: -2}, fault.Usage, "-2 parts"},
		"more than there": {Options{Parts: 4}, fault.Config, "4 parts of a graph of 3 vertices"},
		"method":          {Options{Parts: 1, Method: "magic"}, fault.Usage, `"magic"`},
		"passes":          {Options{Parts: 1, Passes: -1}, fault.Usage, "-1 passes"},
		"slack":           {Options{Parts: 1, Slack: 0.5}, fault.Usage, "slack 0.5"},
		"slack NaN":       {Options{Parts: 1, Slack: math.NaN()}, fault.Usage, "slack NaN"},
		"absent file":     {Options{Parts: 1, Method: "file:/absent"}, fault.Missing, "/absent"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Assign(ds, c.o)
			expect(t, err, c.kind, c.want)
		})
	}
}

// expect checks the kind and the message of a fault.
func expect(t *testing.T, err error, kind fault.Kind, want ...string) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind {
		t.Fatalf("%v has kind %v, expected %v", err, fault.KindOf(err), kind)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not mention %q", err, w)
		}
	}
}

func TestAssignFromFile(t *testing.T) {
	ds := memory(4, false, false, nil)
	for name, c := range map[string]struct {
		text string
		want []uint32 // nil: an error that contains fault
		bad  string
	}{
		"plain":          {"0\n1\n1\n0\n", []uint32{0, 1, 1, 0}, ""},
		"no newline":     {"0\n1\n1\n0", []uint32{0, 1, 1, 0}, ""},
		"windows, blank": {" 0\r\n1 \r\n1\r\n0\r\n\r\n\n", []uint32{0, 1, 1, 0}, ""},
		"out of range":   {"0\n1\n2\n0\n", nil, "line 3: 2 is not below 2"},
		"negative":       {"-1\n", nil, "line 1: -1 is not below 2"},
		"not a number":   {"0\n1\nx7\n0\n", nil, `line 3: "x7" is not a whole number`},
		"fraction":       {"0.5\n", nil, `line 1: "0.5"`},
		"too large":      {"99999999999999999999\n", nil, "line 1"},
		"short":          {"0\n1\n", nil, "2 lines, but the graph has 4 vertices"},
		"long":           {"0\n1\n0\n1\n0\n", nil, "line 5, but the graph has 4 vertices"},
		"hole":           {"0\n\n0\n1\n1\n", nil, "line 2 is empty"},
		"empty":          {"", nil, "0 lines"},
		"no lines":       {strings.Repeat("0 ", 1<<17), nil, "line 1 is too long"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.parts")
			if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := Assign(ds, Options{Method: "file:" + path, Parts: 2})
			if c.want == nil {
				expect(t, err, fault.Data, path, c.bad)
			} else if err != nil || !slices.Equal(got, c.want) {
				t.Fatalf("%v, %v; expected %v", got, err, c.want)
			}
		})
	}
}

func TestAssignFromNpy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "owners.npy")
	o := Options{Method: "file:" + path, Parts: 2}
	file, _ := binary.Append(npy.Header("<i8", 3), binary.LittleEndian, []int64{1, 0, 1})
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Assign(memory(3, false, false, nil), o)
	if err != nil || !slices.Equal(got, []uint32{1, 0, 1}) {
		t.Fatalf("%v, %v", got, err)
	}
	_, err = Assign(memory(4, false, false, nil), o)
	expect(t, err, fault.Data, "3 numbers")
	o.Parts = 1
	_, err = Assign(memory(3, false, false, nil), o)
	expect(t, err, fault.Data, "position 0: 1 is not below 1")
}

// FuzzFile: any file gives owners below parts or a Data fault.
func FuzzFile(f *testing.F) {
	for _, s := range []string{"0\n1\n2\n", "0\r\n\r\n", "9", "\x93NUMPY\x01\x00", "-0\n+1\n0x1\n"} {
		f.Add([]byte(s))
	}
	path := filepath.Join(f.TempDir(), "f.parts")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		var owner []uint32
		var err error
		decodertest.Heap(t, int64(len(text)), func() { owner, err = fromFile(path, 3, 3) })
		if err != nil {
			expect(t, err, fault.Data, path)
		} else if len(owner) != 3 || slices.Max(owner) > 2 {
			t.Fatalf("%v of %q", owner, text)
		}
	})
}

// The counts of one part are the same with and without reading edges.
func TestCountWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := generate.Write(dir, generate.Options{Vertices: 500, Edges: 3000, Features: 8, Classes: 3, Seed: 1}, false); err != nil {
		t.Fatal(err)
	}
	ds, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	o := Options{Method: "hash", Parts: 1}
	want, got := Count(ds, make([]uint32, 500), o), CountWhole(ds, o)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
