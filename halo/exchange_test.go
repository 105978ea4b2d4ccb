package halo_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/codec"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// shards partitions a random graph; some ranks may own nothing.
func shards(t *rapid.T, dir string) []*shard.Shard {
	n := rapid.IntRange(1, 30).Draw(t, "vertices")
	parts := rapid.IntRange(1, min(n, 7)).Draw(t, "parts")
	var pairs graph.EdgePairs
	for range rapid.IntRange(0, 60).Draw(t, "edges") {
		pairs = append(pairs, uint32(rapid.IntRange(0, n-1).Draw(t, "src")), uint32(rapid.IntRange(0, n-1).Draw(t, "dst")))
	}
	data := filepath.Join(dir, "data")
	_, err := graph.Write(data, graph.Content{
		Name: "random", Vertices: int64(n), Edges: pairs, Classes: 1,
		Features: graph.Features{Rows: n, Dim: 1, Dense: make([]float32, n)},
		Labels:   make([]int32, n), Split: make([]uint8, n),
	}, true)
	if err != nil {
		t.Fatal(err)
	}
	ds, err := graph.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	owner := make([]uint32, n)
	for v := range owner {
		owner[v] = uint32(rapid.IntRange(0, parts-1).Draw(t, "owner"))
	}
	if _, err := partition.Build(ds, owner, partition.Options{Method: "hash", Parts: parts}); err != nil {
		t.Fatal(err)
	}
	list := make([]*shard.Shard, parts)
	for r := range list {
		if list[r], err = shard.Open(data, parts, r); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// value returns column c of row v: a whole number, so that sums are exact in any order.
func value(v uint32, c int) float32 { return float32(v)*8 + float32(c) }

// exact lists codecs that restore whole numbers below 256 to the bit.
var exact = []string{"none", "s2", "zstd", "polyline:0", "bf16+zstd+ef"}

func named(t testing.TB, name string) codec.Codec {
	t.Helper()
	c, err := codec.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Forward, every ghost gets its vertex's row. Backward, every owner gets the sum of its
// ghosts' rows. This holds for every codec, with the same bits, and if the codec changes
// between exchanges.
func TestExchange(t *testing.T) {
	dir := t.TempDir()
	var all []codec.Codec
	var each [][]codec.Codec
	for _, name := range exact {
		c := named(t, name)
		all, each = append(all, c), append(each, []codec.Codec{c})
	}
	rapid.Check(t, func(t *rapid.T) {
		list := shards(t, dir)
		cols := rapid.IntRange(1, 5).Draw(t, "cols")
		holders := map[uint32]float32{} // number of ranks that have the vertex as a ghost
		for _, s := range list {
			for _, g := range s.Ghosts {
				holders[g]++
			}
		}
		for k, codecs := range append(each, all) {
			err := inproc.Run(len(list), func(c world.Comm) error {
				return exchangeBothWays(c, list[c.Rank()], codecs, cols, holders)
			})
			if err != nil {
				t.Fatalf("codec %d of %q, or all: %v", k, exact, err)
			}
		}
		for _, s := range list {
			s.Close()
		}
	})
}

func exchangeBothWays(c world.Comm, s *shard.Shard, codecs []codec.Codec, cols int, holders map[uint32]float32) error {
	team, arena := kernels.NewTeam(1), mapped.NewArena()
	defer team.Close()
	defer arena.Free()
	e := halo.NewExchange(c, halo.NewPlan(s), codecs[0], team, team, arena, 5)
	x := make([]float32, s.NumOwn()*cols)
	rounds := 2 * len(codecs)
	for round := range rounds {
		e.Use(codecs[round%len(codecs)])
		for i, v := range s.Own {
			for j := range cols {
				x[i*cols+j] = value(v, j)
			}
		}
		if err := e.BeginForward(matrix(cols, x), halo.Key{Epoch: round}); err != nil {
			return err
		}
		clear(x) // the rows have been copied
		ghosts, err := e.EndForward()
		if err != nil {
			return err
		}
		for i, v := range s.Ghosts {
			for j := range cols {
				if got := ghosts.Host()[i*cols+j]; got != value(v, j) {
					return fmt.Errorf("round %d: ghost of vertex %d has %v in column %d, want %v", round, v, got, j, value(v, j))
				}
			}
		}
		// The received ghost rows are returned: a vertex with k holders gets k times its row.
		if err := e.BeginBackward(cols, halo.Key{Epoch: round}); err != nil {
			return err
		}
		if err := e.EndBackward(matrix(cols, x)); err != nil {
			return err
		}
		for i, v := range s.Own {
			for j := range cols {
				if got, want := x[i*cols+j], holders[v]*value(v, j); got != want {
					return fmt.Errorf("round %d: vertex %d has %v in column %d, want %v", round, v, got, j, want)
				}
			}
		}
	}
	stats := e.TakeStats()
	if want := int64(rounds * 4 * cols * (len(s.Ghosts) + len(s.SendRows))); stats.RawBytes != want {
		return fmt.Errorf("%d raw bytes, want %d", stats.RawBytes, want)
	}
	if len(codecs) == 1 && codecs[0].Name() == "none" && stats.SentBytes != stats.RawBytes {
		return fmt.Errorf("%d bytes sent for %d", stats.SentBytes, stats.RawBytes)
	}
	return nil
}

// twoRanks returns a plan in which each of two ranks holds rows 0 and 2 of the
// other's three.
func twoRanks(rank int) *halo.Plan {
	start := []int64{0, 2, 2}
	if rank == 0 {
		start = []int64{0, 0, 2}
	}
	return &halo.Plan{
		Parts: 2, Own: 3, Ghosts: 2, SendStart: start, SendRows: []uint32{0, 2},
		RecvStart: start, OwnIDs: []uint32{0, 1, 2}, GhostIDs: []uint32{3, 5},
	}
}

// Misuse panics.
func TestMisusePanics(t *testing.T) {
	err := inproc.Run(1, func(c world.Comm) error {
		team, arena := kernels.NewTeam(1), mapped.NewArena()
		defer team.Close()
		defer arena.Free()
		none := named(t, "none")
		p := &halo.Plan{Parts: 1, Own: 2, SendStart: []int64{0, 0}, RecvStart: []int64{0, 0}}
		panics := func(what string, f func()) {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", what)
				}
			}()
			f()
		}
		e := halo.NewExchange(c, p, none, team, team, arena, 4)
		panics("End without Begin", func() { e.EndForward() })
		panics("short rows", func() { e.BeginForward(matrix(2, make([]float32, 3)), halo.Key{}) })
		e = halo.NewExchange(c, p, none, team, team, arena, 4)
		if err := e.BeginForward(matrix(2, make([]float32, 4)), halo.Key{}); err != nil {
			return err
		}
		panics("Use before End", func() { e.Use(none) })
		panics("Begin twice", func() { e.BeginBackward(2, halo.Key{}) })
		panics("the wrong End", func() { e.EndBackward(matrix(2, make([]float32, 4))) })
		p.Parts = 2
		panics("a plan of another size", func() { halo.NewExchange(c, p, none, team, team, arena, 4) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// still is a communicator of one rank that does nothing.
type still struct{ world.Comm }

func (still) Rank() int           { return 0 }
func (still) Size() int           { return 1 }
func (still) Wait() error         { return nil }
func (still) Test() (bool, error) { return true, nil }
func (s still) Ialltoallv([]byte, []int, []byte, []int) (world.Request, error) {
	return s, nil
}

// An exchange of plain rows does not allocate after it is made.
func TestNoAllocation(t *testing.T) {
	team, arena := kernels.NewTeam(1), mapped.NewArena()
	defer team.Close()
	defer arena.Free()
	none := named(t, "none")
	p := &halo.Plan{Parts: 1, Own: 3, Ghosts: 2, SendStart: []int64{0, 2}, SendRows: []uint32{0, 2}, RecvStart: []int64{0, 2}}
	e := halo.NewExchange(still{}, p, none, team, team, arena, 4)
	x := make([]float32, 12)
	allocs := testing.AllocsPerRun(100, func() {
		if e.BeginForward(matrix(4, x), halo.Key{}) != nil {
			t.Error("begin forward")
		}
		if _, err := e.EndForward(); err != nil {
			t.Error(err)
		}
		if e.BeginBackward(4, halo.Key{}) != nil || e.EndBackward(matrix(4, x)) != nil {
			t.Error("backward")
		}
	})
	if allocs != 0 {
		t.Errorf("an exchange there and back allocates %v times", allocs)
	}
}

// matrix returns x as rows of cols columns.
func matrix(cols int, x []float32) kernels.Mat { return kernels.HostMat(len(x)/cols, cols, x) }
