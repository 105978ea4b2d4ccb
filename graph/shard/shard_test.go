package shard_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/internal/fault"
	"siafu/internal/mapped"
)

// dataset writes a graph of n vertices with the given edges, and shards of it
// for the given numbers of ranks.
func dataset(t testing.TB, n int, directed, sparse bool, edges graph.EdgePairs, parts ...int) string {
	t.Helper()
	f := graph.Features{Rows: n, Dim: 8}
	if sparse {
		f.Sparse = &graph.SparseRows{Offsets: make([]int64, n+1)}
		for v := range n {
			f.Sparse.Cols = append(f.Sparse.Cols, uint32(v%8))
			f.Sparse.Vals = append(f.Sparse.Vals, float32(v))
			f.Sparse.Offsets[v+1] = int64(v + 1)
		}
	} else {
		f.Dense = make([]float32, n*f.Dim)
		for i := range f.Dense {
			f.Dense[i] = float32(i + 1)
		}
	}
	labels, split := make([]int32, n), make([]uint8, n)
	for v := range n {
		labels[v], split[v] = int32(v%3), uint8(v%3+1)
		if v == 4 {
			labels[v], split[v] = graph.Unlabelled, graph.SplitNone
		}
	}
	dir := filepath.Join(t.TempDir(), "set")
	if _, err := graph.Write(dir, graph.Content{
		Name: "set", Vertices: int64(n), Edges: edges, Symmetrise: !directed, Features: f, Labels: labels, Split: split, Classes: 3,
	}, false); err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if _, err := partition.Run(dir, partition.Options{Method: "hash", Parts: p, Seed: 1}); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// chords returns a cycle of n vertices with a chord from each vertex.
func chords(n uint32) (edges graph.EdgePairs) {
	for v := range n {
		edges = append(edges, v, (v+1)%n, v, (v*v+3)%n)
	}
	return edges
}

func open(t testing.TB, dir string, parts, rank int) *shard.Shard {
	t.Helper()
	s, err := shard.Open(dir, parts, rank)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// expect checks that err has the given kind and contains all strings in want.
func expect(t testing.TB, err error, kind fault.Kind, want ...string) {
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

func TestOpen(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		dir := dataset(t, 20, true, sparse, chords(20), 3)
		s := open(t, dir, 3, 1)
		meta, err := graph.ReadMeta(dir)
		if err != nil {
			t.Fatal(err)
		}
		if s.Parts != 3 || s.Rank != 1 || s.Vertices != 20 || !s.Directed || s.Classes != 3 || s.FeatureDim != 8 ||
			s.TrainTotal != meta.Train || s.ValTotal != meta.Val || s.TestTotal != meta.Test || s.Fingerprint != meta.Fingerprint() {
			t.Errorf("%+v of %+v", s, meta)
		}
		// Training vertices have label 0 and test vertices label 2.
		if s.MajorityTest != 0 {
			t.Errorf("majority accuracy %v", s.MajorityTest)
		}
		if (s.Features.Sparse != nil) != sparse || s.Features.Rows != s.NumOwn() || s.Features.Dim != 8 {
			t.Errorf("features %+v", s.Features)
		}
	}
}

// The majority label of the training vertices is 0; three of the four test
// vertices have it.
func TestMajority(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	if _, err := graph.Write(dir, graph.Content{
		Name: "set", Vertices: 8, Edges: graph.EdgePairs{}, Features: graph.Features{Rows: 8, Dim: 1, Dense: make([]float32, 8)},
		Labels: []int32{0, 0, 1, 0, 0, 0, 1, 1}, Split: []uint8{1, 1, 1, 3, 3, 3, 3, 2},
	}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := partition.Run(dir, partition.Options{Parts: 1}); err != nil {
		t.Fatal(err)
	}
	if s := open(t, dir, 1, 0); s.MajorityTest != 0.75 {
		t.Errorf("%v, expected 0.75", s.MajorityTest)
	}
}

// A flipped bit or a missing end, at any byte of the file, is a Data fault that names the file.
func TestOpenRefusesDamage(t *testing.T) {
	dir := dataset(t, 20, true, true, chords(20), 2)
	path := shard.Path(dir, 2, 1)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := shard.Open(dir, 2, 1)
		expect(t, err, fault.Data, path)
	}
	// 131 is coprime to the 4096 bytes of a page: the steps visit all places of
	// the header and of the arrays, and the gaps between them.
	for at := 0; at < len(whole); at += 131 {
		b := slices.Clone(whole)
		b[at] ^= 1 << (at % 8)
		damaged(b)
		damaged(whole[:at])
	}
	damaged(append(slices.Clone(whole), 0))
	if err := os.WriteFile(path, whole, 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, dir, 2, 1)
}

func TestOpenRefusesOthers(t *testing.T) {
	dir := dataset(t, 20, true, false, chords(20), 2, 3)
	other := dataset(t, 20, true, true, chords(20), 2)
	into := shard.Path(dir, 2, 1)
	for _, c := range []struct{ name, from, want string }{
		{"P", shard.Path(dir, 3, 1), "for 3 ranks, not 2"},
		{"rank", shard.Path(dir, 2, 0), "of rank 0, not 1"},
		{"dataset", shard.Path(other, 2, 1), "dataset changed after partitioning"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := os.ReadFile(c.from)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(into, b, 0o644); err != nil {
				t.Fatal(err)
			}
			_, err = shard.Open(dir, 2, 1)
			expect(t, err, fault.Data, into, c.want, `run "siafu partition`)
		})
	}
	_, err := shard.Open(dir, 4, 0)
	expect(t, err, fault.Missing, shard.Path(dir, 4, 0), "siafu partition --parts 4")
	_, err = shard.Open(filepath.Join(dir, "absent"), 4, 0)
	expect(t, err, fault.Missing, "meta.json")
}

// brokenPromises contains functions that change a shard. Each violates one invariant in the comments
// of Shard. A file with the changed shard has valid checksums.
var brokenPromises = []struct {
	name, want string
	change     func(s *shard.Shard)
}{
	{"vertices", "header", func(s *shard.Shard) { s.Vertices++ }},
	{"directed", "header", func(s *shard.Shard) { s.Directed = !s.Directed }},
	{"classes", "header", func(s *shard.Shard) { s.Classes++ }},
	{"test total", "header", func(s *shard.Shard) { s.TestTotal-- }},
	{"majority", "not a fraction", func(s *shard.Shard) { s.MajorityTest = -1 }},
	{"own twice", "own: ", func(s *shard.Shard) { s.Own[1] = s.Own[0] }},
	{"own range", "own: ", func(s *shard.Shard) { s.Own[len(s.Own)-1] = 20 }},
	{"ghost is own", "own vertex", func(s *shard.Shard) { s.Ghosts[0] = s.Own[0] }},
	{"ghost range", "ghosts: ", func(s *shard.Shard) { s.Ghosts[len(s.Ghosts)-1] = 99 }},
	{"ghost twice", "ghosts: ", func(s *shard.Shard) { s.Ghosts[1] = s.Ghosts[0] }},
	{"ghost unused", "no own vertex gathers", func(s *shard.Shard) {
		last := uint32(len(s.InDegree) - 1)
		for i, u := range s.In.Cols {
			if u == last {
				s.In.Cols[i]-- // the one before it is a ghost too, and not in this row
			}
		}
	}},
	{"ghost start", "ghost_start: ", func(s *shard.Shard) { s.GhostStart[1] = 1 << 40 }},
	{"ghosts of oneself", "with itself", func(s *shard.Shard) { s.GhostStart[2] = s.GhostStart[1] + 1 }},
	{"ghost start length", "ghost_start: 3 values instead of 4", func(s *shard.Shard) { s.GhostStart = s.GhostStart[:3] }},
	{"send start", "send_start: ", func(s *shard.Shard) { s.SendStart[0] = -1 }},
	{"send range", "send_rows: ", func(s *shard.Shard) { s.SendRows[0] = uint32(len(s.Own)) }},
	{"send twice", "send_rows: ", func(s *shard.Shard) { s.SendRows[1] = s.SendRows[0] }},
	{"row offsets", "in_offsets: ", func(s *shard.Shard) { s.In.Offsets[1] = -5 }},
	{"row offsets end", "in_offsets: ends at", func(s *shard.Shard) { s.In.Cols = s.In.Cols[:len(s.In.Cols)-1] }},
	{"row offsets length", "in_offsets: ", func(s *shard.Shard) { s.In.Offsets = s.In.Offsets[1:] }},
	{"own end", "in_own_end: ", func(s *shard.Shard) { s.InOwnEnd[0] = s.In.Offsets[1] + 1 }},
	{"own after ghost", "in_cols: ", func(s *shard.Shard) { s.InOwnEnd[0] = s.In.Offsets[0]; s.In.Cols[0] = 0 }},
	{"column range", "in_cols: ", func(s *shard.Shard) { s.In.Cols[len(s.In.Cols)-1] = 4000000000 }},
	{"in-degree", "in_degree: ", func(s *shard.Shard) { s.InDegree[0]++ }},
	{"degree range", "out_degree: ", func(s *shard.Shard) { s.OutDegree[0] = 20 }},
	{"ghost without edge", "out_degree: 0", func(s *shard.Shard) { s.OutDegree[len(s.OutDegree)-1] = 0 }},
	{"feature rows", "features: ", func(s *shard.Shard) { s.Features.Dense = s.Features.Dense[8:] }},
	{"sparse offsets", "features_offsets: ", func(s *shard.Shard) { s.Features.Sparse = &graph.SparseRows{} }},
	{"label range", "labels: 3", func(s *shard.Shard) { s.Labels[0] = 3 }},
	{"label missing", "has no label", func(s *shard.Shard) {
		s.Labels[0], s.Split[0] = graph.Unlabelled, graph.SplitTrain
	}},
	{"split range", "split: 4", func(s *shard.Shard) { s.Split[0] = 4 }},
}

func TestOpenRefusesBrokenPromises(t *testing.T) {
	dir := dataset(t, 20, true, false, chords(20), 3)
	path := shard.Path(dir, 3, 1)
	good := heapCopy(open(t, dir, 3, 1))
	for _, c := range brokenPromises {
		t.Run(c.name, func(t *testing.T) {
			s := heapCopy(good)
			c.change(s)
			if err := shard.Write(path, s); err != nil {
				t.Fatal(err)
			}
			_, err := shard.Open(dir, 3, 1)
			expect(t, err, fault.Data, path, c.want, `run "siafu partition" again`)
		})
	}
	if err := shard.Write(path, good); err != nil {
		t.Fatal(err)
	}
	open(t, dir, 3, 1)
}

// A shard of all vertices in the order of the dataset has the arrays of the dataset.
func TestWholeShard(t *testing.T) {
	dir := dataset(t, 20, true, true, chords(20), 1)
	ds, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	s, path := open(t, dir, 1, 0), shard.Path(dir, 1, 0)
	if !s.Whole || !slices.Equal(s.In.Cols, ds.In.Cols) || !slices.Equal(s.Features.Sparse.Vals, ds.Features.Sparse.Vals) ||
		!slices.Equal(s.Labels, ds.Labels) || !slices.Equal(s.Split, ds.Split) || s.InOwnEnd[19] != ds.In.Offsets[20] {
		t.Error("the arrays of the shard differ from those of the dataset")
	}
	for want, change := range map[string]func(s *shard.Shard){
		"own: vertex 1 at position 0": func(s *shard.Shard) { s.Own[0], s.Own[1] = 1, 0 },
		"19 of 20 vertices":           func(s *shard.Shard) { s.Own = s.Own[1:] },
		"in_degree: ":                 func(s *shard.Shard) { s.InDegree[3]++ },
	} {
		c := heapCopy(s)
		c.Whole = true
		change(c)
		if err := shard.Write(path, c); err != nil {
			t.Fatal(err)
		}
		_, err := shard.Open(dir, 1, 0)
		expect(t, err, fault.Data, path, want, `run "siafu partition" again`)
	}
	if err := shard.Write(path, s); err != nil {
		t.Fatal(err)
	}
	edges := filepath.Join(dir, "graph.csr")
	b, err := os.ReadFile(edges)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(edges, b, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = shard.Open(dir, 1, 0)
	expect(t, err, fault.Data, edges, "checksum")
}

// heapCopy returns a copy of a shard that can be changed and does not depend on its file.
func heapCopy(s *shard.Shard) *shard.Shard {
	c := &shard.Shard{
		Parts: s.Parts, Rank: s.Rank, Vertices: s.Vertices, Fingerprint: s.Fingerprint, Assignment: s.Assignment,
		Directed: s.Directed, Classes: s.Classes, FeatureDim: s.FeatureDim,
		TrainTotal: s.TrainTotal, ValTotal: s.ValTotal, TestTotal: s.TestTotal, MajorityTest: s.MajorityTest,
		Own: slices.Clone(s.Own), Ghosts: slices.Clone(s.Ghosts), GhostStart: slices.Clone(s.GhostStart),
		SendStart: slices.Clone(s.SendStart), SendRows: slices.Clone(s.SendRows),
		In:       graph.CSR{Offsets: slices.Clone(s.In.Offsets), Cols: slices.Clone(s.In.Cols)},
		InOwnEnd: slices.Clone(s.InOwnEnd), InDegree: slices.Clone(s.InDegree), OutDegree: slices.Clone(s.OutDegree),
		Features: s.Features, Labels: slices.Clone(s.Labels), Split: slices.Clone(s.Split),
	}
	c.Features.Dense = slices.Clone(s.Features.Dense)
	if x := s.Features.Sparse; x != nil {
		c.Features.Sparse = &graph.SparseRows{Offsets: slices.Clone(x.Offsets), Cols: slices.Clone(x.Cols), Vals: slices.Clone(x.Vals)}
	}
	return c
}

// Transpose reverses every local edge.
func TestTranspose(t *testing.T) {
	for _, directed := range []bool{false, true} {
		dir := dataset(t, 24, directed, false, chords(24), 1, 4)
		for _, world := range [][2]int{{1, 0}, {4, 0}, {4, 1}, {4, 2}, {4, 3}} {
			checkTranspose(t, open(t, dir, world[0], world[1]))
		}
	}
}

// The arrays of a sketch have the lengths of the arrays of the shard. The same holds for the
// transposed edges.
func TestSketch(t *testing.T) {
	for _, directed := range []bool{false, true} {
		for _, sparse := range []bool{false, true} {
			dir := dataset(t, 24, directed, sparse, chords(24), 4)
			for rank := range 4 {
				s := open(t, dir, 4, rank)
				head := shard.Shard{Parts: 4, Rank: rank, Directed: directed, Classes: s.Classes, FeatureDim: s.FeatureDim}
				k := shard.Sketch(head, partition.CountShard(s), sparse, mapped.NewSketch())
				if got, want := lengths(k), lengths(s); !slices.Equal(got, want) || !slices.Equal(k.SendStart, s.SendStart) {
					t.Errorf("directed %t, sparse %t, rank %d: lengths %v, expected %v", directed, sparse, rank, got, want)
				}
			}
		}
	}
}

// lengths returns the lengths of a shard's arrays and of its transposed edges.
func lengths(s *shard.Shard) []int {
	a := mapped.NewArena()
	if s.Fingerprint == "" {
		a = mapped.NewSketch()
	}
	defer a.Free()
	all, trained := s.Transpose(a, s.GhostEdges()), s.TransposeInto(a, s.GhostEdges(), graph.SplitTrain)
	in, out := s.OwnDegrees()
	list := []int{
		len(s.Own), len(s.Ghosts), len(s.SendRows), len(s.In.Offsets), len(s.In.Cols), len(s.InOwnEnd), len(s.InDegree), len(s.OutDegree),
		len(s.Labels), len(s.Split), len(s.Features.Dense), len(in), len(out), int(s.EdgesInto(graph.SplitTrain)), int(a.Used()),
		len(all.OwnBegin), len(all.OwnCols), len(all.Ghost.Offsets), len(all.Ghost.Cols), len(trained.OwnCols), len(trained.Ghost.Cols),
	}
	if x := s.Features.Sparse; x != nil {
		list = append(list, len(x.Offsets), len(x.Cols), len(x.Vals))
	}
	return list
}

// checkTranspose compares Transpose with a simple transposition.
func checkTranspose(t testing.TB, s *shard.Shard) {
	t.Helper()
	a := mapped.NewArena()
	defer a.Free()
	compareTransposed(t, s, s.Transpose(a, s.GhostEdges()), func(int) bool { return true })
	edges := int64(0)
	for split := range uint8(4) {
		compareTransposed(t, s, s.TransposeInto(a, s.GhostEdges(), split), func(v int) bool { return s.Split[v] == split })
		edges += s.EdgesInto(split)
	}
	if edges != int64(len(s.In.Cols)) {
		t.Errorf("%d edges into all splits, of %d", edges, len(s.In.Cols))
	}
}

func compareTransposed(t testing.TB, s *shard.Shard, got *shard.Transposed, chosen func(v int) bool) {
	t.Helper()
	want := make([][]uint32, s.NumOwn()+s.NumGhosts())
	for v := range s.Own {
		if !chosen(v) {
			continue
		}
		for _, u := range s.In.Row(v) {
			want[u] = append(want[u], uint32(v))
		}
	}
	for u := range want {
		var row []uint32
		if u < s.NumOwn() {
			row = got.OwnCols[got.OwnBegin[u]:got.OwnEnd[u]]
		} else {
			row = got.Ghost.Row(u - s.NumOwn())
		}
		if !slices.Equal(row, want[u]) {
			t.Errorf("directed %v, rank %d/%d, source %d: %v, expected %v", s.Directed, s.Rank, s.Parts, u, row, want[u])
		}
	}
	if len(got.OwnBegin) != s.NumOwn() || len(got.OwnEnd) != s.NumOwn() || got.Ghost.Rows() != s.NumGhosts() {
		t.Errorf("%d, %d own rows and %d of ghosts", len(got.OwnBegin), len(got.OwnEnd), got.Ghost.Rows())
	}
}

// Transpose is correct for random directed rows, without a file.
func TestTransposeProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, ghosts := rapid.IntRange(0, 12).Draw(rt, "own"), rapid.IntRange(0, 9).Draw(rt, "ghosts")
		s := &shard.Shard{Directed: true, Own: make([]uint32, n), Ghosts: make([]uint32, ghosts), In: graph.CSR{Offsets: []int64{0}}}
		for v := range n {
			for u := range n + ghosts {
				if u == n {
					s.InOwnEnd = append(s.InOwnEnd, int64(len(s.In.Cols)))
				}
				if u != v && rapid.Bool().Draw(rt, "edge") {
					s.In.Cols = append(s.In.Cols, uint32(u))
				}
			}
			if ghosts == 0 {
				s.InOwnEnd = append(s.InOwnEnd, int64(len(s.In.Cols)))
			}
			s.In.Offsets = append(s.In.Offsets, int64(len(s.In.Cols)))
			s.Split = append(s.Split, rapid.Uint8Max(3).Draw(rt, "split"))
		}
		checkTranspose(t, s)
	})
}
