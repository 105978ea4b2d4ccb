package ranks

import (
	"math"

	"siafu/graph"
	"siafu/halo/refresh"
	"siafu/kernels/model"
)

// seen returns the rows [vertices x width] of an epoch, counted from 1, that ranks receive
// from others: rows of vertices, or gradients of ghosts.
type seen func(epoch int, made [][]float64) [][]float64

// staleGCN is a network of two layers whose rows and gradients from other ranks follow a
// policy: explicit gradient descent with dense matrices.
type staleGCN struct {
	*reference
	own, cut       [][]float64 // Â between vertices of one rank, and of two
	exact          bool        // the first layer's gather is exact, and done once
	w0, w1         [][]float64
	b0, b1         []float64
	rows0, rows1   seen
	grads0, grads1 seen
	epochs         int // trained so far
}

// newStaleGCN makes a staleGCN with a separate seen for each layer and direction.
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

// unreturned omits the returned gradients: on the backward pass it replaces the rows by zeros.
func unreturned(backward bool, s seen) seen {
	if !backward {
		return s
	}
	return func(_ int, made [][]float64) [][]float64 { return zeros(made) }
}

// pipelined gives rows of the previous epoch (PipeGCN, ICLR'22, algorithm 1), or their moving
// average with this decay (§3.4), 0 for none.
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

// periodic gives rows of every n-th epoch, lag epochs later (DIGEST, algorithm 1), and no
// gradients in other epochs.
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

// sampled gives the rows of sampled vertices, times 1/p (BNS-GCN, MLSys'22, algorithm 1).
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

// delayed gives the rows if vertex v's rows are sent in epochs v+1, v+1+r, …, modulo r, and
// used r epochs later (DistGNN, SC'21).
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

// softmax returns the gradient of the mean cross-entropy over training vertices, and that
// mean.
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
