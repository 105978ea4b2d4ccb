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
		for _, kind := range []string{"gcn", "sage", "gin", "gat"} {
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

// pipeGCN is a network of two layers whose rows from other ranks, and whose
// gradients from there, are those of the epoch before (PipeGCN, ICLR'22,
// algorithm 1), over dense matrices: an epoch of gradient descent with weights
// and gradients written out.
type pipeGCN struct {
	*reference
	own, cut       [][]float64 // Â between vertices of one rank, and of two
	exact          bool        // the first layer's gather is, and has been done once
	w0, w1         [][]float64
	b0, b1         []float64
	rows0, rows1   [][]float64 // of the epoch before
	grads0, grads1 [][]float64
}

func newPipeGCN(c graph.Content, s model.Spec, owner []int, flat []float32, exact bool) *pipeGCN {
	p := &pipeGCN{reference: newReference(c, s), exact: exact}
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
	zeros := func(width int) [][]float64 {
		m := make([][]float64, n)
		for v := range m {
			m[v] = make([]float64, width)
		}
		return m
	}
	p.rows0, p.grads0, p.rows1, p.grads1 = zeros(s.Dims[1]), zeros(s.Dims[1]), zeros(s.Dims[2]), zeros(s.Dims[2])
	return p
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
func (p *pipeGCN) epoch(lr float64) float64 {
	rows0 := product(p.x, p.w0)
	var z0 [][]float64
	if p.exact {
		z0 = addedUp(product(p.a, rows0), p.b0)
	} else {
		z0 = addedUp(addedUp(product(p.own, rows0), product(p.cut, p.rows0)...), p.b0)
	}
	h := make([][]float64, len(z0))
	for v := range z0 {
		for _, x := range z0[v] {
			h[v] = append(h[v], max(x, 0))
		}
	}
	rows1 := product(h, p.w1)
	grads1, loss := p.softmax(addedUp(addedUp(product(p.own, rows1), product(p.cut, p.rows1)...), p.b1))

	back1 := addedUp(product(transposed(p.own), grads1), product(transposed(p.cut), p.grads1)...)
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
		back0 = addedUp(product(transposed(p.own), grads0), product(transposed(p.cut), p.grads0)...)
	}
	descend(p.w1, product(transposed(h), back1), lr)
	descend(p.w0, product(transposed(p.x), back0), lr)
	descend([][]float64{p.b1}, [][]float64{columnSums(grads1)}, lr)
	descend([][]float64{p.b0}, [][]float64{columnSums(grads0)}, lr)
	p.rows0, p.rows1, p.grads0, p.grads1 = rows0, rows1, grads0, grads1
	return loss
}

// softmax is the gradient of the mean cross-entropy over training vertices, and
// that mean.
func (p *pipeGCN) softmax(logits [][]float64) (grads [][]float64, loss float64) {
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

// With previous, the losses are those of PipeGCN written down a second time: in
// float64, so that 1e-4 is what 25 steps of float32 may be off.
func TestPreviousIsPipeGCN(t *testing.T) {
	const n, ranks, epochs, lr = 60, 3, 25, 0.3
	owner, content := inTurns(n, ranks), randomContent(n, 3)
	s := model.Spec{Kind: "gcn", Dims: []int{content.Features.Dim, 6, 3}}
	flat := make([]float32, s.NumWeights())
	s.Initialize(flat, "xavier", 4)
	for _, cached := range []bool{false, true} {
		for _, mode := range []string{"pipe", "nopipe"} {
			t.Run(fmt.Sprintf("cached=%t %s", cached, mode), func(t *testing.T) {
				data := write(t, content)
				partitionBy(t, data, "", ranks, owner...)
				c := fifty(t, 0)
				c.Ranks, c.Servers, c.Hidden, c.Epochs, c.LR, c.Mode = ranks, 0, 6, epochs, lr, mode
				c.Optimizer, c.Momentum, c.WeightDecay, c.Init = "sgd", 0, 0, weightsFile(t, s, flat)
				c.Refresh, c.CacheInput, c.Order, c.Intervals = "previous", "off", "apply-first", 2
				if cached {
					c.CacheInput, c.Order = "on", "auto"
				}
				got := train(t, c, data)
				p := newPipeGCN(content, s, owner, flat, cached)
				var want []float64
				for range epochs {
					want = append(want, p.epoch(lr))
				}
				sameLosses(t, mode, got.losses()[:epochs], want, 1e-4)
				c.Refresh = "always"
				exact := train(t, c, data).losses()
				if d := math.Abs(exact[epochs-1] - want[epochs-1]); d < 1e-3 {
					t.Errorf("ghosts of the same epoch would have led to the same loss but for %.2g: the test shows nothing", d)
				}
			})
		}
	}
}

// Without overlap, under codecs that lose nothing, with sums and with servers,
// previous does the same to the bit; for every kind of network it trains.
func TestPreviousWhateverElse(t *testing.T) {
	data := generated(t, true)
	for _, kind := range []string{"gcn", "sage", "gin", "gat"} {
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
	} {
		c := quick(t)
		set(&c)
		err := Train(context.Background(), c, t.TempDir(), IO{io.Discard, io.Discard})
		if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "--refresh") {
			t.Errorf("refresh=%s mode=%s codec=%s cache-input=%s: %v", c.Refresh, c.Mode, c.Codec, c.CacheInput, err)
		}
	}
}
