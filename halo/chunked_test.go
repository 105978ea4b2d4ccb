package halo_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"siafu/halo"
	"siafu/halo/codec"
	"siafu/internal/mapped"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// harmed is a communicator that changes messages.
type harmed struct {
	world.Comm
	change func(m *world.Message)
}

func (h harmed) Recv(src, tag int) (world.Message, error) {
	m, err := h.Comm.Recv(src, tag)
	h.change(&m)
	return m, err
}

func (h harmed) TryRecv(src, tag int) (world.Message, bool, error) {
	m, ok, err := h.Comm.TryRecv(src, tag)
	if ok {
		h.change(&m)
	}
	return m, ok, err
}

// A damaged block, or a block of another exchange, is an error that names the sender.
func TestDamagedBlock(t *testing.T) {
	src := codec.Rows{X: make([]float32, 8), Cols: 4, Len: 2}
	for _, name := range []string{"s2", "int4", "polyline+zstd"} {
		c := named(t, name)
		harms := map[string]func(m *world.Message){
			"nothing":   func(m *world.Message) { m.Data = nil },
			"other row": func(m *world.Message) { m.Data = codec.EncodeBlock(nil, c, src, 1, halo.Key{}, nil) },
			"too few":   func(m *world.Message) { m.Data = codec.EncodeBlock(nil, c, src.Part(0, 1), 0, halo.Key{}, nil) },
			"no codec":  func(m *world.Message) { m.Data = codec.EncodeBlock(nil, named(t, "bf16"), src, 0, halo.Key{}, nil) },
		}
		for at := range 60 {
			harms[fmt.Sprint("byte ", at)] = func(m *world.Message) { m.Data[at%len(m.Data)] ^= 4 }
		}
		for what, change := range harms {
			err := inproc.Run(2, func(w world.Comm) error {
				team, arena := kernels.NewTeam(1), mapped.NewArena()
				defer team.Close()
				defer arena.Free()
				e := halo.NewExchange(harmed{w, change}, twoRanks(w.Rank()), c, team, team, arena, 4)
				if err := e.BeginForward(matrix(4, make([]float32, 12)), halo.Key{}); err != nil {
					return err
				}
				if _, err := e.EndForward(); err == nil ||
					!strings.Contains(err.Error(), fmt.Sprintf("from rank %d is damaged", 1-w.Rank())) {
					t.Errorf("%s, %s: %v", name, what, err)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// star returns a plan in which every rank holds all rows of every other, n each.
func star(rank, ranks, n int) *halo.Plan {
	p := &halo.Plan{Parts: ranks, Own: n, Ghosts: (ranks - 1) * n, SendStart: []int64{0}, RecvStart: []int64{0}}
	for q := range ranks {
		rows := n
		if q == rank {
			rows = 0
		}
		for r := range rows {
			p.SendRows, p.GhostIDs = append(p.SendRows, uint32(r)), append(p.GhostIDs, uint32(q*n+r))
		}
		p.SendStart = append(p.SendStart, int64(len(p.SendRows)))
	}
	p.RecvStart = p.SendStart
	for r := range n {
		p.OwnIDs = append(p.OwnIDs, uint32(rank*n+r))
	}
	return p
}

// shuffling is a communicator that hides received messages at random, so that the order of
// chunks varies.
type shuffling struct {
	world.Comm
	rng *rand.Rand
}

func (s shuffling) TryRecv(src, tag int) (world.Message, bool, error) {
	if s.rng.IntN(3) > 0 {
		return world.Message{}, false, nil
	}
	return s.Comm.TryRecv(src, tag)
}

// Any order of chunks and any number of workers give the same bits: those of rows encoded one
// by one and added in ascending order of ranks. Without feedback the result does not depend on
// the previous exchange.
func TestChunks(t *testing.T) {
	const ranks, cols, n = 3, 64, 9000
	var all [ranks + 1][]float32
	for r := range all {
		all[r] = make([]float32, n*cols)
		for i := range all[r] {
			u := kernels.Philox([4]uint32{uint32(i), uint32(r)}, [2]uint32{})
			all[r][i] = float32(u[0])/(1<<32) - 0.3
		}
	}
	rows := func(rank, round int) []float32 { return all[rank+round] }
	names := []string{"int4", "bf16+s2", "int8+ef"}
	if testing.Short() {
		names = names[:1]
	}
	for _, name := range names {
		c := named(t, name)
		var results [2][ranks][]float32
		for variant, workers := range []int{1, 3} {
			err := inproc.Run(ranks, func(w world.Comm) error {
				team, arena := kernels.NewTeam(workers), mapped.NewArena()
				defer team.Close()
				defer arena.Free()
				plan := star(w.Rank(), ranks, n)
				comm := shuffling{w, rand.New(rand.NewPCG(uint64(w.Rank()), uint64(variant)))}
				e := halo.NewExchange(comm, plan, c, team, team, arena, cols)
				own := make([]float32, n*cols)
				for round := range 2 {
					if err := e.BeginForward(matrix(cols, rows(w.Rank(), round)), halo.Key{Epoch: round}); err != nil {
						return err
					}
					ghosts, err := e.EndForward()
					if err != nil {
						return err
					}
					if name == "int4" {
						checkGhosts(t, c, plan, ghosts.Host(), w.Rank(), cols, round, rows)
					}
					if err := e.BeginBackward(cols, halo.Key{Epoch: round}); err != nil {
						return err
					}
					if err := e.EndBackward(matrix(cols, own)); err != nil {
						return err
					}
				}
				if s := e.TakeStats(); s.Messages < 4*(ranks-1)*2 || s.SentBytes*3 > s.RawBytes*2 {
					t.Errorf("%s: %+v", name, s)
				}
				results[variant][w.Rank()] = own
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for r := range ranks {
			if !slices.Equal(results[0][r], results[1][r]) {
				t.Errorf("%s: rank %d has other sums in another order of messages", name, r)
			}
		}
	}
}

// counting is a communicator that counts messages received without waiting.
type counting struct {
	world.Comm
	taken *atomic.Int32
}

func (c counting) TryRecv(src, tag int) (world.Message, bool, error) {
	m, ok, err := c.Comm.TryRecv(src, tag)
	if ok {
		c.taken.Add(1)
	}
	return m, ok, err
}

// Messages arrive between Begin and End, if the caller calls Arrived.
func TestMessagesMoveOnMeanwhile(t *testing.T) {
	const cols, n = 64, 9000
	chunks := (n-1)/halo.ChunkRows(named(t, "int4"), cols) + 1
	err := inproc.Run(2, func(w world.Comm) error {
		team, arena := kernels.NewTeam(1), mapped.NewArena()
		defer team.Close()
		defer arena.Free()
		comm := counting{w, new(atomic.Int32)}
		e := halo.NewExchange(comm, star(w.Rank(), 2, n), named(t, "int4"), team, team, arena, cols)
		if err := e.BeginForward(matrix(cols, make([]float32, n*cols)), halo.Key{}); err != nil {
			return err
		}
		for began := time.Now(); time.Since(began) < hosttest.Patience; time.Sleep(time.Millisecond) {
			if here, err := e.Arrived(); here || err != nil {
				break
			}
		}
		if taken := int(comm.taken.Load()); taken != chunks || chunks < 2 {
			t.Error("chunks do not arrive before End")
		}
		_, err := e.EndForward()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkGhosts compares ghosts with their owners' rows, encoded and decoded one by one.
func checkGhosts(t *testing.T, c codec.Codec, p *halo.Plan, ghosts []float32, rank, cols, round int, rows func(rank, round int) []float32) {
	want := make([]float32, cols)
	for i := 0; i < p.Ghosts; i += 977 {
		id := int(p.GhostIDs[i])
		owner, r := id/p.Own, id%p.Own
		one := codec.Rows{X: rows(owner, round)[r*cols:], Cols: cols, Len: 1, IDs: []uint32{uint32(id)}}
		if err := c.Decode(codec.Rows{X: want, Cols: cols, Len: 1}, c.Encode(nil, one, halo.Key{Epoch: round}), false); err != nil {
			t.Error(err)
		}
		if !slices.Equal(ghosts[i*cols:(i+1)*cols], want) {
			t.Errorf("rank %d, round %d: ghost of vertex %d is not what its owner sent", rank, round, id)
		}
	}
}

// Forward and backward exchange between two ranks in one process, in raw bytes per rank.
func BenchmarkExchange(b *testing.B) {
	const cols, n = 128, 20000
	for _, name := range []string{"none", "bf16", "int8", "int4", "int4+zstd"} {
		b.Run(name, func(b *testing.B) {
			c := named(b, name)
			b.SetBytes(2 * 4 * cols * n)
			err := inproc.Run(2, func(w world.Comm) error {
				team, arena := kernels.NewTeam(1), mapped.NewArena()
				defer team.Close()
				defer arena.Free()
				e := halo.NewExchange(w, star(w.Rank(), 2, n), c, team, team, arena, cols)
				x := make([]float32, n*cols)
				for i := range x {
					x[i] = float32(i%7) - 2
				}
				both := func() error {
					if err := e.BeginForward(matrix(cols, x), halo.Key{}); err != nil {
						return err
					}
					if _, err := e.EndForward(); err != nil {
						return err
					}
					if err := e.BeginBackward(cols, halo.Key{}); err != nil {
						return err
					}
					return e.EndBackward(matrix(cols, x))
				}
				if err := both(); err != nil { // which allocates
					return err
				}
				e.TakeStats()
				if w.Rank() == 0 {
					b.ResetTimer()
				}
				for range b.N {
					if err := both(); err != nil {
						return err
					}
				}
				if s := e.TakeStats(); w.Rank() == 0 {
					b.ReportMetric(float64(s.RawBytes)/float64(s.SentBytes), "ratio")
					for unit, d := range map[string]time.Duration{"encode-ms": s.Encode, "wait-ms": s.Wait, "decode-ms": s.Decode} {
						b.ReportMetric(1e3*d.Seconds()/float64(b.N), unit)
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
