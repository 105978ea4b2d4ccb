package ranks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/fault"
	"siafu/halo/refresh"
	"siafu/kernels/model"
)

// inTurns deals n vertices to so many owners.
func inTurns(n, owners int) []int {
	list := make([]int, n)
	for v := range list {
		list[v] = v % owners
	}
	return list
}

// cut splits edges into those between vertices of one owner and the others.
func cut(edges graph.EdgePairs, owner []int) (own, others graph.EdgePairs) {
	for i := 0; i < len(edges); i += 2 {
		if owner[edges[i]] == owner[edges[i+1]] {
			own = append(own, edges[i], edges[i+1])
		} else {
			others = append(others, edges[i], edges[i+1])
		}
	}
	return own, others
}

// With never, ranks train as if the edges between them were not in the graph,
// to the last bit, and no row travels.
func TestNeverIsWithoutCutEdges(t *testing.T) {
	const n, ranks = 90, 3
	owner := inTurns(n, ranks)
	whole := randomContent(n, 3)
	for _, symmetric := range []bool{true, false} {
		whole.Symmetrise = symmetric
		apart := whole
		apart.Edges, _ = cut(whole.Edges.(graph.EdgePairs), owner)
		for _, kind := range []string{"gcn", "sage", "gin", "gat", "gatv2"} {
			for _, gather := range []string{"float32", "bf16"} {
				name := fmt.Sprintf("%s symmetric=%t %s", kind, symmetric, gather)
				t.Run(name, func(t *testing.T) {
					run := func(content graph.Content, policy string) trained {
						data := write(t, content)
						partitionBy(t, data, "", ranks, owner...)
						c := fifty(t, 0.3)
						c.Model, c.Ranks, c.Servers, c.LR, c.Epochs = kind, ranks, 0, 0.005, 12
						c.Refresh, c.Gather, c.CacheInput, c.VertexOrder, c.Hidden = policy, gather, "off", "natural", 8
						return train(t, c, data)
					}
					got, want := run(whole, "never"), run(apart, "always")
					for i, e := range got.Epochs {
						if e.Loss != want.Epochs[i].Loss {
							t.Fatalf("epoch %d has loss %v, without the edges %v", i+1, e.Loss, want.Epochs[i].Loss)
						}
						if e.GhostBytesRaw != 0 {
							t.Errorf("epoch %d has sent %d bytes of rows", i+1, e.GhostBytesRaw)
						}
					}
					s := model.Spec{Kind: kind, Dims: []int{whole.Features.Dim, 8, 3}, Heads: 1, OutputHeads: 1}
					if !slices.Equal(got.weights(t, s), want.weights(t, s)) {
						t.Error("the weights differ")
					}
				})
			}
		}
	}
}

// seen is what ranks see of rows [vertices x width] that others have made in an epoch,
// from 1 on: of those of vertices, or of the gradients that they hold of others'.
type seen func(epoch int, made [][]float64) [][]float64

// staleGCN is a network of two layers whose rows from other ranks, and whose
// gradients from there, are those that a policy lets ranks see, over dense matrices: an
// epoch of gradient descent with weights and gradients written out.
type staleGCN struct {
	*reference
	own, cut       [][]float64 // Â between vertices of one rank, and of two
	exact          bool        // the first layer's gather is, and has been done once
	w0, w1         [][]float64
	b0, b1         []float64
	rows0, rows1   seen
	grads0, grads1 seen
	epochs         int // that have been trained
}

// newStaleGCN makes one in which each layer and direction has a seen of its own.
func newStaleGCN(c graph.Content, s model.Spec, owner []int, flat []float32, exact bool, policy func(backward bool) seen) *staleGCN {
	p := &staleGCN{reference: newReference(c, s), exact: exact}
	p.rows0, p.rows1, p.grads0, p.grads1 = policy(false), policy(false), policy(true), policy(true)
	n := len(owner)
	p.own, p.cut = square(n), square(n)
	for v := range n {
		for u := range n {
			if owner[u] == owner[v] {
				p.own[v][u] = p.a[v][u]
			} else {
				p.cut[v][u] = p.a[v][u]
			}
		}
	}
	matrix := func(q model.Param) [][]float64 {
		m := make([][]float64, q.Rows)
		for i := range m {
			for _, x := range q.Of(flat)[i*q.Cols : (i+1)*q.Cols] {
				m[i] = append(m[i], float64(x))
			}
		}
		return m
	}
	for _, q := range s.Params() {
		switch m := matrix(q); {
		case q.Bias && q.Layer == 0:
			p.b0 = m[0]
		case q.Bias:
			p.b1 = m[0]
		case q.Layer == 0:
			p.w0 = m
		default:
			p.w1 = m
		}
	}
	return p
}

// unreturned is what ranks see where gradients do not travel.
func unreturned(backward bool, s seen) seen {
	if !backward {
		return s
	}
	return func(_ int, made [][]float64) [][]float64 { return zeros(made) }
}

// zeros is as large as m.
func zeros(m [][]float64) [][]float64 {
	z := make([][]float64, len(m))
	for v := range m {
		z[v] = make([]float64, len(m[v]))
	}
	return z
}

// pipelined is what ranks see of the epoch before (PipeGCN, ICLR'22, algorithm 1); of
// what is smoothed, a moving average with this decay (§3.4), 0 for none.
func pipelined(decay float64) seen {
	var before, average [][]float64
	return func(_ int, made [][]float64) [][]float64 {
		if before == nil {
			before, average = zeros(made), zeros(made)
		}
		for v := range made {
			for j := range made[v] {
				average[v][j] = decay*average[v][j] + (1-decay)*before[v][j]
			}
		}
		before = made
		return average
	}
}

// periodic is what they see of every n-th epoch, lag epochs later (DIGEST, algorithm
// 1), and of gradients nothing in other epochs.
func periodic(n, lag int, backward bool) seen {
	var pushed, pulled [][]float64
	return func(epoch int, made [][]float64) [][]float64 {
		if pulled == nil {
			pulled, pushed = zeros(made), zeros(made)
		}
		due := epoch > lag && (epoch-lag)%n == 1%n
		if lag == n && due { // before the others are pushed
			pulled = pushed
		}
		if epoch%n == 1%n {
			pushed = made
		}
		switch {
		case due && lag < n:
			pulled = pushed
		case !due && backward:
			return zeros(made)
		}
		return pulled
	}
}

// sampled is what they see of the vertices that are drawn, times 1/p (BNS-GCN, MLSys'22,
// algorithm 1).
func sampled(seed uint64, p float64) seen {
	return func(epoch int, made [][]float64) [][]float64 {
		m := zeros(made)
		for v := range made {
			for j := range made[v] {
				if refresh.Drawn(seed, epoch, uint32(v), p) {
					m[v][j] = made[v][j] / p
				}
			}
		}
		return m
	}
}

// delayed is what they see where vertex v's rows leave in epochs v+1, v+1+r and so on,
// modulo r, and are used r epochs later (DistGNN, SC'21).
func delayed(r int) seen {
	var old [][][]float64
	var now [][]float64
	return func(epoch int, made [][]float64) [][]float64 {
		old = append(old, made)
		if now == nil {
			now = zeros(made)
		}
		for v := range made {
			if left := epoch - r; left >= 1 && (left-1)%r == v%r {
				now[v] = old[left-1][v]
			}
		}
		return now
	}
}

func transposed(a [][]float64) [][]float64 {
	m := make([][]float64, len(a[0]))
	for i := range m {
		for _, r := range a {
			m[i] = append(m[i], r[i])
		}
	}
	return m
}

// addedUp adds b, or the rows that are b, to a.
func addedUp(a [][]float64, b ...[]float64) [][]float64 {
	for v := range a {
		for j := range a[v] {
			a[v][j] += b[v%len(b)][j]
		}
	}
	return a
}

// descend subtracts a gradient.
func descend(w, grad [][]float64, lr float64) {
	for i := range w {
		for j := range w[i] {
			w[i][j] -= lr * grad[i][j]
		}
	}
}

func columnSums(a [][]float64) []float64 {
	sums := make([]float64, len(a[0]))
	for _, r := range a {
		for j, x := range r {
			sums[j] += x
		}
	}
	return sums
}

// epoch trains once and returns the loss before.
func (p *staleGCN) epoch(lr float64) float64 {
	p.epochs++
	rows0 := product(p.x, p.w0)
	var z0 [][]float64
	if p.exact {
		z0 = addedUp(product(p.a, rows0), p.b0)
	} else {
		z0 = addedUp(addedUp(product(p.own, rows0), product(p.cut, p.rows0(p.epochs, rows0))...), p.b0)
	}
	h := make([][]float64, len(z0))
	for v := range z0 {
		for _, x := range z0[v] {
			h[v] = append(h[v], max(x, 0))
		}
	}
	rows1 := product(h, p.w1)
	grads1, loss := p.softmax(addedUp(addedUp(product(p.own, rows1), product(p.cut, p.rows1(p.epochs, rows1))...), p.b1))

	back1 := addedUp(product(transposed(p.own), grads1), p.grads1(p.epochs, product(transposed(p.cut), grads1))...)
	grads0 := product(back1, transposed(p.w1))
	for v := range grads0 {
		for j := range grads0[v] {
			if z0[v][j] <= 0 {
				grads0[v][j] = 0
			}
		}
	}
	var back0 [][]float64
	if p.exact {
		back0 = product(transposed(p.a), grads0)
	} else {
		back0 = addedUp(product(transposed(p.own), grads0), p.grads0(p.epochs, product(transposed(p.cut), grads0))...)
	}
	descend(p.w1, product(transposed(h), back1), lr)
	descend(p.w0, product(transposed(p.x), back0), lr)
	descend([][]float64{p.b1}, [][]float64{columnSums(grads1)}, lr)
	descend([][]float64{p.b0}, [][]float64{columnSums(grads0)}, lr)
	return loss
}

// softmax is the gradient of the mean cross-entropy over training vertices, and
// that mean.
func (p *staleGCN) softmax(logits [][]float64) (grads [][]float64, loss float64) {
	count := 0.0
	for _, s := range p.content.Split {
		if s == graph.SplitTrain {
			count++
		}
	}
	grads = make([][]float64, len(logits))
	for v, row := range logits {
		grads[v] = make([]float64, len(row))
		if p.content.Split[v] != graph.SplitTrain {
			continue
		}
		sum := 0.0
		for _, x := range row {
			sum += math.Exp(x)
		}
		label := p.content.Labels[v]
		loss -= (row[label] - math.Log(sum)) / count
		for j, x := range row {
			grads[v][j] = math.Exp(x) / sum / count
		}
		grads[v][label] -= 1 / count
	}
	return grads, loss
}

// The losses are those of policies written down a second time: in float64, so that 1e-5
// is what 25 steps of float32 may be off.
func TestPoliciesWrittenDownAgain(t *testing.T) {
	const n, ranks, epochs, lr, seed = 60, 3, 25, 0.3, 7
	owner, content := inTurns(n, ranks), randomContent(n, 3)
	s := model.Spec{Kind: "gcn", Dims: []int{content.Features.Dim, 6, 3}}
	flat := make([]float32, s.NumWeights())
	s.Initialize(flat, "xavier", 4)
	setting := func(cached bool, mode string) Config {
		c := fifty(t, 0)
		c.Ranks, c.Servers, c.Hidden, c.Epochs, c.LR, c.Mode, c.Seed = ranks, 0, 6, epochs, lr, mode, seed
		c.Optimizer, c.Momentum, c.WeightDecay, c.Init = "sgd", 0, 0, weightsFile(t, s, flat)
		c.CacheInput, c.Order, c.Intervals, c.PreAggregate, c.EvalEvery = "off", "apply-first", 2, "off", 9
		if cached {
			c.CacheInput, c.Order = "on", "auto"
		}
		return c
	}
	data := write(t, content)
	partitionBy(t, data, "", ranks, owner...)
	exact := map[bool]float64{} // the last loss with ghosts of the same epoch
	for _, cached := range []bool{false, true} {
		exact[cached] = train(t, setting(cached, "pipe"), data).losses()[epochs-1]
	}
	either := func(p func() seen) func(bool) seen { return func(bool) seen { return p() } }
	for policy, again := range map[string]func(backward bool) seen{
		"previous":      either(func() seen { return pipelined(0) }),
		"previous:F0.7": func(backward bool) seen { return pipelined(map[bool]float64{false: 0.7}[backward]) },
		"previous:G0.7": func(backward bool) seen { return pipelined(map[bool]float64{true: 0.7}[backward]) },
		"every:4":       func(backward bool) seen { return periodic(4, 0, backward) },
		"every:4,3":     func(backward bool) seen { return periodic(4, 3, backward) },
		"every:3,3":     func(backward bool) seen { return periodic(3, 3, backward) },
		"age:5":         func(backward bool) seen { return periodic(5, 0, backward) },
		"sample:0.6":    either(func() seen { return sampled(seed, 0.6) }),
		"every:2 no":    func(backward bool) seen { return unreturned(backward, periodic(2, 0, backward)) },
		"previous no":   func(backward bool) seen { return unreturned(backward, pipelined(0)) },
		"delay:3":       either(func() seen { return delayed(3) }),
	} {
		for _, cached := range []bool{false, true} {
			for _, mode := range []string{"pipe", "nopipe"} {
				t.Run(fmt.Sprintf("%s cached=%t %s", policy, cached, mode), func(t *testing.T) {
					c := setting(cached, mode)
					name, no := strings.CutSuffix(policy, " no")
					c.GhostGradients = map[bool]string{true: "no", false: "yes"}[no]
					c.Refresh = name
					got := train(t, c, data)
					p := newStaleGCN(content, s, owner, flat, cached, again)
					var want []float64
					for range epochs {
						want = append(want, p.epoch(lr))
					}
					sameLosses(t, mode, got.losses()[:epochs], want, 1e-5)
					if d := math.Abs(exact[cached] - want[epochs-1]); d < 1e-3 {
						t.Errorf("ghosts of the same epoch would have led to the same loss but for %.2g: the test shows nothing", d)
					}
				})
			}
		}
	}
}

// In its limit each policy is always, to the last bit, for every kind of network, with
// codecs that round at random and feed errors back, and with sums where it has them.
func TestPoliciesInTheirLimits(t *testing.T) {
	data := generated(t, true)
	for name, set := range map[string]func(*Config){
		"gcn":           func(c *Config) { c.PreAggregate = "on" },
		"gat":           func(c *Config) { c.Model, c.Heads = "gat", 2 },
		"sage, int4+ef": func(c *Config) { c.Model, c.Codec, c.Recompute, c.Layers = "sage", "int4+ef", true, 3 },
		"gin, nopipe": func(c *Config) {
			c.Model, c.Mode, c.Codec, c.PreAggregate = "gin", "nopipe", "int8", "off"
			c.Gather = "bf16"
		},
		"gcn, kept, s2":   func(c *Config) { c.InputDropout, c.CacheInput, c.Codec, c.Servers = 0, "on", "s2", 1 },
		"gatv2":           func(c *Config) { c.Model, c.Heads, c.AttentionDropout = "gatv2", 2, 0.2 },
		"gat, five parts": func(c *Config) { c.Model, c.Codec, c.Parts = "gat", "bf16", 5 },
	} {
		run := func(policy string, sums bool) trained {
			c := quick(t)
			c.Ranks, c.Servers, c.Epochs, c.EvalEvery, c.LR, c.CheckpointEvery, c.GhostFeatures = 4, 0, 6, 0, 0.005, "off", "sent"
			if set(&c); !sums { // which sample has not
				c.PreAggregate = "off"
			}
			c.Refresh = policy
			return train(t, c, data)
		}
		want := map[bool]trained{true: run("always", true), false: run("always", false)}
		for _, policy := range []string{"every:1", "sample:1", "delay:0", "drift:0", "age:1,0.5"} {
			t.Run(name+" "+policy, func(t *testing.T) {
				sums := policy != "sample:1"
				if !sums && name == "gatv2" {
					t.Skip("it is refused")
				}
				if got := run(policy, sums); !bytes.Equal(got.model, want[sums].model) {
					t.Errorf("another model than that of always: loss %v, want %v", got.Summary.FinalLoss, want[sums].Summary.FinalLoss)
				}
			})
		}
		previous := run("previous", true)
		for _, policy := range []string{"every:1,1", "delay:1", "previous:GF0"} {
			t.Run(name+" "+policy, func(t *testing.T) {
				if !bytes.Equal(run(policy, true).model, previous.model) {
					t.Error("another model than that of previous")
				}
			})
		}
	}
}

// Without overlap, under codecs that lose nothing, with sums and with servers,
// previous does the same to the bit; for every kind of network it trains.
func TestPreviousWhateverElse(t *testing.T) {
	data := generated(t, true)
	for _, kind := range []string{"gcn", "sage", "gin", "gat", "gatv2"} {
		run := func(set func(*Config)) trained {
			c := quick(t)
			c.Model, c.Ranks, c.Servers, c.Epochs, c.Refresh, c.LR = kind, 4, 1, 20, "previous", 0.005
			set(&c)
			return train(t, c, data)
		}
		want := run(func(*Config) {})
		if first, last := want.Epochs[0].Loss, want.Summary.FinalLoss; !(last < first) {
			t.Errorf("%s: the loss goes from %v to %v", kind, first, last)
		}
		for name, set := range map[string]func(*Config){
			"again":  func(*Config) {},
			"nopipe": func(c *Config) { c.Mode = "nopipe" },
			"s2":     func(c *Config) { c.Codec = "s2" },
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				if got := run(set); !bytes.Equal(got.model, want.model) {
					t.Error("another model")
				}
			})
		}
		for _, codec := range []string{"int8", "bf16+ef", "none"} {
			t.Run(kind+" sums "+codec, func(t *testing.T) {
				got := run(func(c *Config) { c.Codec, c.PreAggregate = codec, "on" })
				// Coarser rows and another order of sums: near, not the same.
				if d := math.Abs(got.Summary.FinalLoss - want.Summary.FinalLoss); d > 0.1*want.Summary.FinalLoss {
					t.Errorf("final loss %v, want about %v", got.Summary.FinalLoss, want.Summary.FinalLoss)
				}
			})
		}
	}
}

// What does not go together is refused with both flags' names.
func TestRefreshRefusals(t *testing.T) {
	for _, set := range []func(*Config){
		func(c *Config) { c.Refresh, c.Mode = "previous", "async" },
		func(c *Config) { c.Refresh, c.Codec = "previous", "auto" },
		func(c *Config) { c.Refresh, c.CacheInput = "never", "on" },
		func(c *Config) { c.Refresh = "sometimes" },
		func(c *Config) { c.Refresh = "sample:1.5" },
		func(c *Config) { c.Refresh, c.Mode = "every:2", "async" },
		func(c *Config) { c.Refresh, c.Codec = "drift:0.1", "auto" },
		func(c *Config) { c.Refresh, c.PreAggregate = "sample:0.5", "on" },
	} {
		c := quick(t)
		set(&c)
		err := Train(context.Background(), c, t.TempDir(), IO{Out: io.Discard, Err: io.Discard})
		if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "--refresh") {
			t.Errorf("refresh=%s mode=%s codec=%s cache-input=%s: %v", c.Refresh, c.Mode, c.Codec, c.CacheInput, err)
		}
	}
}
