package ranks

import (
	"fmt"
	"sync/atomic"
	"testing"

	"siafu/graph/shard"
	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

// Rows that are summed before they are sent change the losses only by the order of sums, with
// fewer bytes. Each kind of network runs in each world on one of the graphs, with SIAFU_BIG=1
// on both.
func TestPreAggregation(t *testing.T) {
	t.Parallel()
	seed := hosttest.Turn(t, 4)
	for d, directed := range []bool{false, true} {
		data := generated(t, directed)
		for i, kind := range model.Kinds() {
			if !(model.Spec{Kind: kind}).Adds() || !hosttest.Sampled(2, d, i, seed) {
				continue
			}
			turn := func(k int) bool { return hosttest.Sampled(2, k, i/2, seed/2) }
			run := func(how string, world [2]int, set func(*Config)) trained {
				c := compared(t, 0.3)
				c.Model, c.LR, c.Partitioner, c.PreAggregate = kind, 0.005, "hash", how
				c.Ranks, c.Servers = world[0]+world[1], world[1]
				if set != nil {
					set(&c)
				}
				return train(t, c, data)
			}
			want := run("off", [2]int{1, 0}, nil).losses()
			for k, w := range [][2]int{{1, 0}, {2, 0}, {3, 1}, {4, 2}, {7, 0}} {
				if !turn(k) {
					continue
				}
				t.Run(fmt.Sprintf("%s directed=%t graph ranks=%d servers=%d", kind, directed, w[0], w[1]), func(t *testing.T) {
					on, off := run("on", w, nil), run("off", w, func(c *Config) { c.Epochs = 1 })
					sameLosses(t, kind, on.losses(), want, 1e-4)
					with, without := on.Epochs[0].GhostBytesRaw, off.Epochs[0].GhostBytesRaw
					if fewer := with < without; fewer != (w[0] > 1) {
						t.Errorf("%d bytes in an epoch with sums, %d without", with, without)
					}
				})
			}
			if !turn(0) {
				continue
			}
			four := run("on", [2]int{4, 1}, nil)
			for name, set := range map[string]func(*Config){
				"nopipe":  func(c *Config) { c.Mode = "nopipe" },
				"zstd":    func(c *Config) { c.Codec = "zstd" },
				"threads": func(c *Config) { c.Threads = 3 },
			} {
				t.Run(kind+" "+name, func(t *testing.T) {
					sameLosses(t, name, run("on", [2]int{4, 1}, set).losses(), four.losses(), 0)
				})
			}
		}
	}
}

// With rounded rows, sums are rounded too, and losses stay close.
func TestPreAggregationOfRoundedRows(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	run := func(how, gather, codec string) []float64 {
		c := compared(t, 0)
		c.Ranks, c.Servers, c.Partitioner = 4, 0, "hash"
		c.PreAggregate, c.Gather, c.Codec = how, gather, codec
		return train(t, c, data).losses()
	}
	want := run("off", "float32", "none")
	for _, tc := range []struct{ gather, codec string }{{"bf16", "none"}, {"float32", "bf16"}, {"float32", "int8+ef"}} {
		t.Run(tc.gather+" "+tc.codec, func(t *testing.T) {
			sameLosses(t, tc.codec, run("on", tc.gather, tc.codec), want, 0.02)
			sameLosses(t, "again", run("on", tc.gather, tc.codec), run("on", tc.gather, tc.codec), 0)
		})
	}
}

// An epoch moves a row for each vertex of the covers, for every gather and for its gradient:
// exactly the bytes given by the covers.
func TestPreAggregationMovesCovers(t *testing.T) {
	t.Parallel()
	const parts = 5
	for _, directed := range []bool{false, true} {
		data := generated(t, directed)
		partitionBy(t, data, "hash", parts)
		var rows, ghosts atomic.Int64
		err := inproc.Run(parts, func(c world.Comm) error {
			team, a := kernels.NewTeam(1), mapped.NewArena()
			defer team.Close()
			defer a.Free()
			s, err := shard.Open(data, parts, c.Rank())
			if err != nil {
				return err
			}
			defer s.Close()
			r, err := halo.Reduce(c, s, halo.SumCosts{}, team, a)
			if err == nil {
				rows.Add(int64(r.Plan.Ghosts))
				ghosts.Add(int64(r.Rows))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		c := quick(t)
		c.Ranks, c.Servers, c.Epochs, c.Dropout, c.Order, c.PreAggregate = parts, 0, 2, 0, "apply-first", "on"
		for _, e := range train(t, c, data).Epochs {
			if want := 4 * (2*16 + 2*4) * rows.Load(); e.GhostBytesRaw != want || rows.Load() >= ghosts.Load() {
				t.Errorf("epoch %d moved %d bytes, want %d for %d rows instead of %d", e.Epoch, e.GhostBytesRaw,
					want, rows.Load(), ghosts.Load())
			}
		}
	}
}
