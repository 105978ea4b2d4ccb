package history_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"siafu/graph/generate"
	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/history"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/ranks/world"
	"siafu/ranks/world/inproc"
)

const (
	ranks    = 3
	vertices = 300
	batches  = 4
)

func shapes() []halo.Shape { return []halo.Shape{{Layer: 1, Width: 7}, {Layer: 2, Width: 16}} }

// member is a rank with its store.
type member struct {
	world.Comm
	shard *shard.Shard
	team  *kernels.Team
	store *history.Store
	arena *mapped.Arena
}

// together runs part on all ranks of a generated graph.
func together(t *testing.T, f history.Format, part func(m *member) error) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "planted")
	if _, err := generate.Write(data,
		generate.Options{Vertices: vertices, Edges: 2000, Features: 4, Classes: 3, Seed: 5}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := partition.Run(data, partition.Options{Method: "hash", Parts: ranks, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	err := inproc.Run(ranks, func(c world.Comm) error {
		s, err := shard.Open(data, ranks, c.Rank())
		if err != nil {
			return err
		}
		defer s.Close()
		team, arena := kernels.NewTeam(1), mapped.NewArena()
		defer team.Close()
		defer arena.Free()
		o := history.Options{Comm: c, Shapes: shapes(), Plan: halo.NewPlan(s), Format: f, Seed: 3, Team: team}
		return part(&member{c, s, team, history.New(o, arena), arena})
	})
	if err != nil {
		t.Error(err)
	}
}

// row returns the row of a vertex in an epoch: a function of its dataset id.
func row(id uint32, epoch, layer, width int) []float32 {
	x := make([]float32, width)
	for k := range x {
		x[k] = float32(math.Sin(float64(id)*1.7+float64(epoch)*0.9+float64(layer)*3.1+float64(k))) * 4
	}
	return x
}

// tolerance is the largest error of numbers within ±4 in a format: a unit in the last of 8
// bits of bfloat16 at 4, or one of 255 steps over a span of 8, rounded up to bfloat16.
var tolerance = map[history.Format]float64{history.Float32: 0, history.BF16: 4. / 256, history.Int8: 8. / 255 * 1.02}

// draw returns random sets for a rank.
func (m *member) draw(rng *rand.Rand) (list []history.Set) {
	pick := func(n int) (some []uint32) {
		for v := range n {
			if rng.IntN(3) == 0 {
				some = append(some, uint32(v))
			}
		}
		return some
	}
	for range batches {
		list = append(list, history.Set{Own: pick(m.shard.NumOwn()), Ghosts: pick(m.shard.NumGhosts())})
	}
	return list
}

// For any pushes and pulls, in any order of sets, a pulled row is the last one that its owner
// has pushed, with its epoch; or zeros of epoch 0 if there is none.
func TestPullBringsTheNewest(t *testing.T) {
	for f := range history.Format(3) {
		t.Run(history.Formats[f], func(t *testing.T) {
			together(t, f, func(m *member) error {
				list := m.draw(rand.New(rand.NewPCG(1, uint64(m.Rank()))))
				if err := m.store.ExchangeSets(list, m.arena); err != nil {
					return err
				}
				all := rand.New(rand.NewPCG(2, 2)) // the same numbers on all ranks
				newest := map[[2]int]int{}         // of dataset ids that have been pushed, by layer: epoch
				for step := 1; step <= 12; step++ {
					if err := m.step(f, step, all, list, newest); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// step pushes a range of every rank's own vertices and pulls a set.
func (m *member) step(f history.Format, step int, all *rand.Rand, list []history.Set, newest map[[2]int]int) error {
	layer := 1 + all.IntN(2)
	width := shapes()[layer-1].Width
	chosen := make([]int, ranks)
	lo, hi := all.Float64(), all.Float64()
	lo, hi = min(lo, hi), max(lo, hi)
	for q := range chosen {
		chosen[q] = all.IntN(batches)
	}
	own := m.shard.Own[int(lo*float64(m.shard.NumOwn())):int(hi*float64(m.shard.NumOwn()))]
	var x []float32
	for _, id := range own {
		x = append(x, row(id, step, layer, width)...)
	}
	m.store.Push(layer, step, step, int(lo*float64(m.shard.NumOwn())), x)
	ids := make([]byte, 0, 4*len(own))
	for _, id := range own {
		ids = binary.LittleEndian.AppendUint32(ids, id)
	}
	pushed, err := world.Gather(m, 0, ids)
	if err != nil {
		return err
	}
	blob, err := world.BcastBlob(m, bytes.Join(pushed, nil), 0)
	if err != nil {
		return err
	}
	for ; len(blob) > 0; blob = blob[4:] {
		newest[[2]int{layer, int(binary.LittleEndian.Uint32(blob))}] = step
	}
	if err := m.store.BeginPull(layer, chosen); err != nil {
		return err
	}
	set := list[chosen[m.Rank()]]
	got, epochs := make([]float32, set.Len()*width), make([]uint32, set.Len())
	if err := m.store.EndPull(got, epochs); err != nil {
		return err
	}
	return m.compare(f, set, layer, width, got, epochs, newest)
}

func (m *member) compare(f history.Format, set history.Set, layer, width int, got []float32, epochs []uint32, newest map[[2]int]int) error {
	for i := range set.Len() {
		id := uint32(0)
		if i < len(set.Own) {
			id = m.shard.Own[set.Own[i]]
		} else {
			id = m.shard.Ghosts[set.Ghosts[i-len(set.Own)]]
		}
		epoch := newest[[2]int{layer, int(id)}]
		want := make([]float32, width)
		if epoch > 0 {
			want = row(id, epoch, layer, width)
		}
		if int(epochs[i]) != epoch {
			return fmt.Errorf("vertex %d in layer %d is of epoch %d, want %d", id, layer, epochs[i], epoch)
		}
		for k, w := range want {
			if d := math.Abs(float64(got[i*width+k]) - float64(w)); !(d <= tolerance[f]) {
				return fmt.Errorf("vertex %d in layer %d: column %d is %v, want %v", id, layer, k, got[i*width+k], w)
			}
		}
	}
	return nil
}

// DIGEST, equation 7: "KVS memory usage = (L - 1) × dim × |V| × s", over all ranks, where s is
// the size of a number: 4 bytes, or 2 in bfloat16; with eight bits, a row has four more bytes
// for its grid.
func TestMemoryIsEquationSeven(t *testing.T) {
	const layers, dim = 3, 128
	for f, bytes := range map[history.Format]int64{
		history.Float32: (layers - 1) * dim * vertices * 4,
		history.BF16:    (layers - 1) * dim * vertices * 2,
		history.Int8:    (layers - 1) * (dim + 4) * vertices,
	} {
		total := make([]int64, ranks)
		together(t, f, func(m *member) error {
			o := history.Options{Shapes: []halo.Shape{{Layer: 1, Width: dim}, {Layer: 2, Width: dim}},
				Plan: halo.NewPlan(m.shard), Format: f}
			total[m.Rank()] = history.New(o, mapped.NewSketch()).Bytes()
			return nil
		})
		if got := total[0] + total[1] + total[2]; got != bytes {
			t.Errorf("%s: %d bytes on all ranks, want %d", history.Formats[f], got, bytes)
		}
	}
	// "for a 3-layer GNN model, training large graph dataset such as OGB-Products (with
	// 2,449,029 nodes and 128 hidden dimensions) … around 2.336 GB"
	o := history.Options{Shapes: []halo.Shape{{Layer: 1, Width: 128}, {Layer: 2, Width: 128}}, Plan: &halo.Plan{Own: 2449029}}
	if gb := float64(history.New(o, mapped.NewSketch()).Bytes()) / (1 << 30); math.Abs(gb-2.336) > 5e-4 {
		t.Errorf("ogbn-products takes %.4f GB", gb)
	}
}

// A row that no grid spans is read as NaN, not as another row.
func TestUnboundedRow(t *testing.T) {
	together(t, history.Int8, func(m *member) error {
		x := append(row(1, 1, 1, 7), row(2, 1, 1, 7)...)
		x[3] = float32(math.Inf(1))
		m.store.Push(1, 5, 1, 0, x)
		got := make([]float32, 7)
		if epoch := m.store.Own(1, 0, got); epoch != 5 || !math.IsNaN(float64(got[0])) {
			return fmt.Errorf("epoch %d, %v", epoch, got)
		}
		if m.store.Own(1, 1, got); slices.ContainsFunc(got, func(v float32) bool { return v != v }) {
			return fmt.Errorf("its neighbour is %v", got)
		}
		return nil
	})
}

// Different numbers of sets on ranks are an error, not a deadlock.
func TestAgreeRefuses(t *testing.T) {
	together(t, history.Float32, func(m *member) error {
		list := m.draw(rand.New(rand.NewPCG(1, uint64(m.Rank()))))
		if m.Rank() == 1 {
			list = list[:2]
		}
		if err := m.store.ExchangeSets(list, m.arena); fault.KindOf(err) != fault.Runtime {
			return fmt.Errorf("rank %d: %v", m.Rank(), err)
		}
		return nil
	})
}

// The packed states of all ranks, in any order, restore every rank's rows. Damaged or
// truncated state, or state of another network, is an error.
func TestPackAndUnpack(t *testing.T) {
	for f := range history.Format(3) {
		together(t, f, func(m *member) error {
			for layer := 1; layer <= 2; layer++ {
				width := shapes()[layer-1].Width
				for i, id := range m.shard.Own[:50] {
					m.store.Push(layer, int(id)%7+1, 9, i, row(id, 3, layer, width))
				}
			}
			blocks, err := world.Gather(m, 0, m.store.Pack())
			if err != nil {
				return err
			}
			slices.Reverse(blocks)
			blob, err := world.BcastBlob(m, bytes.Join(blocks, nil), 0)
			if err != nil {
				return err
			}
			empty := func(f history.Format) *history.Store {
				return history.New(history.Options{Comm: m, Shapes: shapes(), Plan: halo.NewPlan(m.shard), Format: f}, m.arena)
			}
			again := empty(f)
			if err := again.Unpack(blob); err != nil {
				return err
			}
			if !bytes.Equal(again.Pack(), m.store.Pack()) {
				return fmt.Errorf("%s: the rows differ", history.Formats[f])
			}
			for name, bad := range map[string][]byte{"cut off": blob[:len(blob)-1], "empty": {}, "longer": append(slices.Clone(blob), 1),
				"one rank's": m.store.Pack()[:30]} {
				if err := empty(f).Unpack(bad); fault.KindOf(err) != fault.Data && !(name == "empty" && err != nil) {
					return fmt.Errorf("%s: %v", name, err)
				}
			}
			if err := empty((f + 1) % 3).Unpack(blob); fault.KindOf(err) != fault.Data {
				return fmt.Errorf("another format: %v", err)
			}
			return nil
		})
	}
}

// VR-GCN, equation 5: Z = Â_s (H - H̃) + Â H̃. A gather from a vertex's samples and ghost
// gives this result for every vertex with samples, for any history of its neighbours.
func TestControlVariates(t *testing.T) {
	together(t, history.Float32, func(m *member) error {
		const layer, width = 2, 16
		rng, s := rand.New(rand.NewPCG(4, uint64(m.Rank()))), m.shard
		n := s.NumOwn()
		for i, id := range s.Own {
			if rng.IntN(4) > 0 { // the others have never been pushed
				m.store.Push(layer, 1, 1, i, row(id, 1, layer, width))
			}
		}
		col := make([]float32, n+s.NumGhosts())
		for u := range col {
			col[u] = rng.Float32()
		}
		const vertices, fresh = 10, 30
		v, err := history.NewVariates(m.store, s, col, vertices, m.team, m.arena)
		if err != nil {
			return err
		}
		f := history.Field{Ends: []int{vertices, fresh}, Offsets: []int64{0}}
		var made []float32
		for i := range fresh {
			f.Rows = append(f.Rows, uint32((7*i)%n))
			made = append(made, row(s.Own[f.Rows[i]], 2, layer, width)...)
			for range i % 3 {
				f.Samples = append(f.Samples, uint32(rng.IntN(fresh)))
			}
			f.Offsets, f.Factor = append(f.Offsets, int64(len(f.Samples))), append(f.Factor, 1+rng.Float32())
		}
		was := make([][]float32, n)
		for u := range was {
			was[u] = make([]float32, width)
			m.store.Own(layer, u, was[u])
		}
		v.Begin(2, f)
		at := halo.Slot{Epoch: 2, Layer: layer}
		if err := v.Offer(at, kernels.HostMat(fresh, width, made), 0, fresh); err != nil {
			return err
		}
		if _, _, err := v.Take(at); err != nil {
			return err
		}
		view, err := v.View(at)
		if err != nil {
			return err
		}
		// Pull all rows of other ranks, which push nothing before their pull.
		theirs, epochs := make([]float32, s.NumGhosts()*width), make([]uint32, s.NumGhosts())
		if err := m.Barrier(); err != nil {
			return err
		}
		old := history.New(history.Options{Comm: m, Shapes: shapes(), Plan: halo.NewPlan(s), Team: m.team}, m.arena)
		for u := range was {
			old.Push(layer, 1, 1, u, was[u])
		}
		set := history.Set{}
		for g := range theirs[:s.NumGhosts()] {
			set.Ghosts = append(set.Ghosts, uint32(g))
		}
		if err := old.ExchangeSets([]history.Set{set}, m.arena); err != nil {
			return err
		}
		if err := old.BeginPull(layer, make([]int, ranks)); err != nil {
			return err
		}
		if err := old.EndPull(theirs, epochs); err != nil {
			return err
		}
		for i := range vertices {
			for k := range width {
				var z, got float64
				vertex := f.Rows[i]
				z += float64(col[vertex]) * float64(was[vertex][k])
				for _, u := range s.In.Cols[s.In.Offsets[vertex]:s.In.Offsets[vertex+1]] {
					if int(u) < n {
						z += float64(col[u]) * float64(was[u][k])
					} else {
						z += float64(col[u]) * float64(theirs[(int(u)-n)*width+k])
					}
				}
				for _, p := range f.Samples[f.Offsets[i]:f.Offsets[i+1]] {
					u := f.Rows[p]
					z += float64(f.Factor[i]) * float64(col[u]) * float64(made[int(p)*width+k]-was[u][k])
					got += float64(col[u]) * float64(made[int(p)*width+k])
				}
				got = float64(f.Factor[i]) * (got + float64(view.Rows.Host()[i*width+k]))
				if math.Abs(got-z) > 1e-4 { // sums of some ten products of numbers within 4, in float32
					return fmt.Errorf("vertex %d: column %d of Z is %v, want %v", vertex, k, got, z)
				}
			}
		}
		for i, u := range f.Rows { // the computed rows have been pushed
			x := make([]float32, width)
			if epoch := m.store.Own(layer, int(u), x); epoch != 2 || !slices.Equal(x, made[i*width:(i+1)*width]) {
				return fmt.Errorf("the history of vertex %d is of epoch %d", u, epoch)
			}
		}
		return nil
	})
}
