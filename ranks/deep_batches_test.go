package ranks

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/graph"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels/model"
	"siafu/ranks/forecast"
)

// deepNetworks are networks of layers of several kinds in mini-batches, by name.
func deepNetworks() map[string]func(*Config) {
	return map[string]func(*Config){
		"gcnii":               func(c *Config) { c.Model, c.Alpha = "gcnii", 0.3 },
		"appnp":               func(c *Config) { c.Model, c.Layers, c.Hops, c.Alpha = "appnp", 2, 3, 0.3 },
		"gcn add":             func(c *Config) { c.Residual = "add" },
		"gcn initial elu":     func(c *Config) { c.Residual, c.Alpha, c.Activation = "initial", 0.3, "elu" },
		"gcn cat layer prelu": func(c *Config) { c.Jumping, c.Norm, c.Activation = "cat", "layer", "prelu" },
		"gcn max initial":     func(c *Config) { c.Jumping, c.Residual, c.Alpha = "max", "initial", 0.3 },
		"sage add layer":      func(c *Config) { c.Model, c.Residual, c.Norm = "sage", "add", "layer" },
		"sage initial l2":     func(c *Config) { c.Model, c.Residual, c.Alpha, c.Norm = "sage", "initial", 0.3, "l2" },
		"gin max add":         func(c *Config) { c.Model, c.Jumping, c.Residual, c.LR = "gin", "max", "add", 0.003 },
		"gat initial cat": func(c *Config) {
			c.Model, c.Residual, c.Alpha, c.Jumping, c.AttentionDropout = "gat", "initial", 0.3, "cat", 0.2
		},
	}
}

// deepRun returns a run of a deep network.
func deepRun(t *testing.T, set func(*Config)) Config {
	c := inBatches(t, 1, 1)
	c.Batch, c.Layers, c.Hidden, c.EvalEvery, c.Threads, c.Epochs = "full", 4, 8, 0, 2, 5
	c.Optimizer, c.Initializer, c.LR, c.Dropout = "sgd", "xavier", 0.03, 0.3
	set(&c)
	return c
}

// The limit of every method is exact training of networks whose layers read the outputs of several
// layers: of history to the bit, of the others except for the order of sums. 1e-5 allows the float32
// errors of 5 steps.
func TestDeepBatchesAreExact(t *testing.T) {
	t.Parallel()
	all := deepNetworks()
	graphs := []string{generated(t, false), fewTargets(t, false), fewTargets(t, true)}
	for g, kind := range []string{"dense", "few targets", "sparse"} {
		data := graphs[g]
		for k, name := range slices.Sorted(maps.Keys(hosttest.Share(t, 2, all))) {
			if !hosttest.Sampled(2, g, k) {
				continue
			}
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				c := deepRun(t, all[name])
				run := func(batch string, ranks int, set func(*Config)) trained {
					c := c
					c.Batch, c.Ranks, c.Out = batch, ranks, t.TempDir()
					set(&c)
					return train(t, c, data)
				}
				same := func(*Config) {}
				want := run("full", 1, same).losses()
				sameLosses(t, "neighbor", run(allNeighbours(c), 3, same).losses(), want, 1e-5)
				sameLosses(t, "cluster", run("cluster:7,7", 1, same).losses(), want, 1e-5)
				if !model.KindOf(c.Model).Adds() {
					return
				}
				cached := func(c *Config) { c.Order, c.CacheInput = "gather-first", "on" }
				if model.KindOf(c.Model).Part == nil {
					c.InputDropout = 0
				}
				exact := run("full", 1, cached)
				if batch := run("history:1", 1, same); !bytes.Equal(batch.model, exact.model) {
					t.Errorf("history: another model, losses %v, want %v", batch.losses(), exact.losses())
				}
				// On several ranks, only the gradients between ranks are missing.
				constant := run("full", 3, func(c *Config) { cached(c); c.GhostGradients = "no" })
				sameLosses(t, "history on 3 ranks", run("history:1", 3, same).losses(), constant.losses(), 1e-5)
				if model.KindOf(c.Model).Variates {
					sameLosses(t, "variates", run("variates:1,1000", 1, same).losses(), exact.losses(), 1e-5)
				}
			})
		}
	}
}

// fewTargets returns a directed graph with edge weights, whose vertices have few neighbours. Each further
// hop from the training vertices reaches more vertices. Its features are sparse on request.
func fewTargets(t *testing.T, sparse bool) string {
	c := randomContent(300, 3)
	c.Symmetrise = false
	for v := range c.Split {
		if c.Split[v] == graph.SplitTrain && v > 40 {
			c.Split[v] = graph.SplitVal
		}
	}
	if weigh(&c, true); sparse {
		x := &graph.SparseRows{Offsets: []int64{0}}
		for v := range c.Split {
			for k := range v % 4 {
				x.Cols, x.Vals = append(x.Cols, uint32((v*5)%10+k*10)), append(x.Vals, 1)
			}
			x.Offsets = append(x.Offsets, int64(len(x.Cols)))
		}
		c.Features = graph.Features{Rows: len(c.Split), Dim: 40, Sparse: x}
	}
	return write(t, c)
}

// allNeighbours returns the method neighbor with all neighbours of all training vertices.
func allNeighbours(c Config) string {
	batch, gathers := "neighbor:", c.Layers
	if c.Model == "appnp" {
		gathers = c.Hops
	}
	for range gathers {
		batch += "500,"
	}
	return batch + "10000"
}

// Arrays are estimated as in TestBatchesAreEstimated.
func TestDeepBatchesAreEstimated(t *testing.T) {
	t.Parallel()
	all := deepNetworks()
	for kind, data := range map[string]string{"dense": generated(t, false), "sparse": bag(t)} {
		for _, tc := range []struct{ network, batch string }{
			{"gcnii", "history:1"}, {"gcnii", "history:5"}, {"gcnii", "variates:3,2"},
			{"gcnii", "neighbor:2,2,2,2,10"}, {"gcnii", "cluster:10,3"},
			{"gcn cat layer prelu", "history:5"}, {"gcn max initial", "variates:3,2"}, {"sage add layer", "history:5"},
			{"sage initial l2", "cluster:10,3"},
			{"appnp", "variates:3,2"},
		} {
			t.Run(kind+" "+tc.network+" "+tc.batch, func(t *testing.T) {
				t.Parallel()
				c := deepRun(t, all[tc.network])
				c.Ranks, c.Threads, c.Batch, c.Hidden, c.Epochs, c.PreAggregate = 3, 1, tc.batch, 40, 2, "off"
				run := train(t, c, data).Summary
				f, parts := foreseen(t, c, data, 3, 0)
				for rank, got := range run.PerRank {
					want := f.GraphRank(rank, parts[rank])
					if ratio := float64(want.Of(forecast.Array)) / float64(got.ArrayBytes); ratio < 0.95 || ratio > 1.25 {
						t.Errorf("rank %d made arrays of %d bytes, estimated were %d: %+v", rank, got.ArrayBytes,
							want.Of(forecast.Array), want)
					}
				}
			})
		}
	}
}

// deepHistory is a second implementation of mini-batches with a history, for all networks of the
// reference: its gradients are central differences in float64.
type deepHistory struct {
	*reference
	w       []float64
	owner   []int
	gathers []int         // layers that gather hidden rows
	history [][][]float64 // by these layers
}

func newDeepHistory(c graph.Content, s model.Spec, flat []float32, owner []int) *deepHistory {
	d := &deepHistory{reference: newReference(c, s), owner: owner}
	for _, x := range flat {
		d.w = append(d.w, float64(x))
	}
	for _, l := range s.GatherLayers() {
		if l > 0 { // the first layer gathers features, which never change
			rows := make([][]float64, len(owner))
			for v := range rows {
				rows[v] = make([]float64, s.Dims[l])
			}
			d.gathers, d.history = append(d.gathers, l), append(d.history, rows)
		}
	}
	return d
}

// deepStep has the vertices of a step: by rank those whose rows are computed and those of the loss, and
// by layer of gathers those whose rows replace the history. With fresh, ranks read the rows of the step
// from each other, otherwise those of earlier steps.
type deepStep struct {
	live, targets, pushed [][]bool
	fresh                 bool
}

// substitute returns the function that replaces the rows outside of a rank's live rows by frozen ones, by
// layer of gathers. It stores the input of the layer after them in next.
func (d *deepHistory) substitute(live []bool, frozen [][][]float64, next *[][]float64) func(l int, h [][]float64) [][]float64 {
	return func(l int, h [][]float64) [][]float64 {
		at := slices.Index(d.gathers, l)
		if at == len(frozen) && next != nil {
			*next = h
		}
		if at < 0 || at >= len(frozen) {
			return h
		}
		mixed := slices.Clone(frozen[at])
		for v := range h {
			if live[v] {
				mixed[v] = h[v]
			}
		}
		return mixed
	}
}

// step makes an update and returns the sum of losses.
func (d *deepHistory) step(s deepStep, lr float64) (loss, count float64) {
	var frozen [][][]float64
	for at := range d.gathers {
		now := slices.Clone(d.history[at])
		for q := range s.live {
			var rows [][]float64
			d.logits(d.w, d.substitute(s.live[q], frozen, &rows))
			for v := range now {
				if d.owner[v] == q && s.pushed[at][v] {
					now[v] = rows[v]
				}
			}
		}
		if frozen = append(frozen, d.history[at]); s.fresh {
			frozen[at] = now
		}
		d.history[at] = now
	}
	of := func(w []float64) (loss, count float64) {
		for q := range s.live {
			sum, n := d.crossEntropy(d.logits(w, d.substitute(s.live[q], frozen, nil)), s.targets[q])
			loss, count = loss+sum, count+n
		}
		return loss, count
	}
	loss, count = of(d.w)
	before := slices.Clone(d.w)
	for i, x := range before {
		const h = 1e-6
		w := slices.Clone(before)
		w[i] = x + h
		up, _ := of(w)
		w[i] = x - h
		down, _ := of(w)
		d.w[i] -= lr * (up - down) / (2 * h) / max(count, 1)
	}
	return loss, count
}

// forOthers returns, by depth and rank, the vertices whose rows other ranks read in a gather with depth-1
// gathers above although no training vertex of their owner does: those fewer hops from a training vertex
// of any rank than along edges a of one rank, from training vertices or vertices of a lower depth.
func forOthers(owner []int, split []uint8, a [][]float64, layers int) [][][]int {
	read, computed, list := make([]int, len(owner)), make([]int, len(owner)), make([][][]int, layers+1)
	for v := range owner {
		if split[v] != graph.SplitTrain {
			read[v], computed[v] = layers+1, layers+1
		}
	}
	for depth := 1; depth <= layers; depth++ {
		for v := range owner {
			for u := range owner {
				if a[v][u] != 0 && read[v] == depth-1 {
					read[u] = min(read[u], depth)
				}
				if a[v][u] != 0 && computed[v] == depth-1 && owner[u] == owner[v] {
					computed[u] = min(computed[u], depth)
				}
			}
		}
		list[depth] = make([][]int, slices.Max(owner)+1)
		for v, q := range owner {
			if read[v] == depth && computed[v] > depth {
				list[depth][q], computed[v] = append(list[depth][q], v), depth
			}
		}
	}
	return list
}

// around returns the vertices of some owners that reach some of the given vertices of the same owner
// along at most one edge.
func (d *deepHistory) around(set []bool) []bool {
	near := slices.Clone(set)
	for v, in := range set {
		for u := range d.owner {
			near[u] = near[u] || in && d.owner[u] == d.owner[v] && d.a[v][u] != 0
		}
	}
	return near
}

// Deep networks in mini-batches with a history equal a second implementation on several ranks: rows and
// gradients of each step, the latter by central differences. 1e-5 allows the float32 errors of 20 steps.
// variates samples all neighbours of a rank, so that only rows of other ranks come from the history.
func TestDeepHistoriesAreReference(t *testing.T) {
	t.Parallel()
	const n, epochs, batches, lr = 40, 3, 4, 0.1
	all := deepNetworks()
	for i, tc := range hosttest.ShareOf(t, 4, []struct { // either kind is in each share
		network, kind string
		ranks         int
	}{
		{"gcnii", "history", 1}, {"gcnii", "variates", 2}, {"gcnii", "history", 2}, {"gcnii", "variates", 1}, {"appnp", "variates", 2},
		{"gcn add", "history", 2}, {"gcn cat layer prelu", "variates", 2}, {"gcn max initial", "history", 2},
		{"sage initial l2", "history", 2},
	}) {
		t.Run(fmt.Sprint(tc.network, " ", tc.kind, " ", tc.ranks), func(t *testing.T) {
			t.Parallel()
			content, owner := randomContent(n, 3), inTurns(n, tc.ranks)
			weigh(&content, i%2 > 0)
			data := write(t, content)
			partitionBy(t, data, "", tc.ranks, owner...)
			c := deepRun(t, all[tc.network])
			c.Ranks, c.Layers, c.Hidden, c.Epochs, c.Dropout, c.InputDropout, c.LR, c.Momentum, c.WeightDecay = tc.ranks,
				3, 4, epochs, 0, 0, lr, 0, 0
			if c.Model == "gcnii" {
				c.InnerDecay = 0
			}
			c.VertexOrder, c.Intervals, c.Batch = "natural", 2, fmt.Sprintf("%s:%d", tc.kind, batches)
			if tc.kind == "variates" {
				c.Batch += fmt.Sprintf(",%d", n)
			}
			s := c.Network(content.Features.Dim, 3)
			flat := make([]float32, s.NumWeights())
			s.Initialize(flat, "xavier", 4)
			for i := range flat {
				flat[i] += 0.02 * (float32(i%7) - 2.5) // zeros from the history must not meet the kink of ReLU
			}
			c.Init = weightsFile(t, s, flat)
			d := newDeepHistory(content, s, flat, owner)
			var want []float64
			for epoch := 1; epoch <= epochs; epoch++ {
				loss, count := 0.0, 0.0
				for k := range batches {
					sum, targets := d.step(d.vertices(c, tc.kind, epoch, k, tc.ranks, batches), lr)
					loss, count = loss+sum, count+targets
				}
				want = append(want, loss/count)
			}
			sameLosses(t, tc.kind, train(t, c, data).losses()[:epochs], want, 1e-5)
		})
	}
}

// vertices returns the vertices of the k-th step of an epoch.
func (d *deepHistory) vertices(c Config, kind string, epoch, k, ranks, batches int) (s deepStep) {
	s.fresh = kind == "history"
	none := func() []bool { return make([]bool, len(d.owner)) }
	field := none()
	for q := range ranks {
		live, targets := none(), none()
		var own, train []int
		for v := range d.owner {
			if d.owner[v] == q {
				if own = append(own, v); d.content.Split[v] == graph.SplitTrain {
					train = append(train, v)
				}
			}
		}
		if s.fresh {
			piece := rand.New(rand.NewPCG(c.Seed, uint64(epoch)<<32|uint64(q))).Perm(batches)[k]
			for _, v := range own[piece*len(own)/batches : (piece+1)*len(own)/batches] {
				live[v], field[v], targets[v] = true, true, d.content.Split[v] == graph.SplitTrain
			}
		} else {
			for _, v := range own {
				live[v] = true
			}
			for _, v := range deal(c, epoch, q, k, batches, train) {
				targets[v], field[v] = true, true
			}
		}
		s.live, s.targets = append(s.live, live), append(s.targets, targets)
	}
	s.pushed = make([][]bool, len(d.gathers))
	for at := len(d.gathers) - 1; at >= 0; at-- {
		if !s.fresh {
			field = d.around(field)
			for q, list := range forOthers(d.owner, d.content.Split, d.a, len(d.gathers))[len(d.gathers)-at] {
				for _, v := range deal(c, epoch, q, k, batches, list) {
					field[v] = true
				}
			}
		}
		s.pushed[at] = field
	}
	return s
}
