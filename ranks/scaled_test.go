package ranks

import (
	"math"
	"math/rand/v2"
	"slices"

	"siafu/graph"
	"siafu/kernels/model"
)

// asMade gives ranks the rows of the same epoch.
func asMade(bool) seen { return func(_ int, made [][]float64) [][]float64 { return made } }

// scaled is a second implementation of GNNAutoScale (algorithm 1 of the paper, with one
// history), with dense matrices in float64. Ranks own vertices, and each trains its
// mini-batches.
type scaled struct {
	*staleGCN
	history [][]float64 // of H, the input of the second layer
	edges   [][]float64 // weights by target and source (along)
	ranks   int
	cuts    [][][]int // vertices, by rank and batch
	share   float64   // of GraphFM-OB's momentum, 0: none
}

func newScaled(c graph.Content, s model.Spec, owner []int, flat []float32, ranks, batches int) *scaled {
	g := &scaled{staleGCN: newStaleGCN(c, s, owner, flat, true, asMade), ranks: ranks}
	own := make([][]int, ranks)
	for v, q := range owner {
		own[q] = append(own[q], v)
		g.history = append(g.history, make([]float64, s.Dims[1]))
	}
	for _, list := range own {
		var cuts [][]int
		for k := range batches {
			cuts = append(cuts, list[k*len(list)/batches:(k+1)*len(list)/batches])
		}
		g.cuts = append(g.cuts, cuts)
	}
	return g
}

// step makes an update from a batch of each rank, and returns the sum of losses.
func (g *scaled) step(chosen []int, lr float64) (loss float64) {
	in, count := make([]int, len(g.x)), 0.0 // the rank whose batch a vertex is in, from 1 on
	for q, k := range chosen {
		for _, v := range g.cuts[q][k] {
			in[v] = q + 1
			if g.content.Split[v] == graph.SplitTrain {
				count++
			}
		}
	}
	ax := product(g.a, g.x)
	z := addedUp(product(ax, g.w0), g.b0)
	for v, q := range in {
		for j := range z[v] {
			if q > 0 {
				g.history[v][j] = max(z[v][j], 0)
			}
		}
	}
	gathered := product(g.a, g.history)
	if g.share > 0 {
		g.average(in, gathered)
	}
	logits := addedUp(product(gathered, g.w1), g.b1)
	target, within := make([]bool, len(in)), square(len(in))
	for v := range in {
		target[v] = in[v] > 0 && g.content.Split[v] == graph.SplitTrain
		for u := range in {
			if in[v] > 0 && in[u] == in[v] {
				within[v][u] = g.a[v][u]
			}
		}
	}
	grads, loss := g.softmaxOf(logits, target, max(count, 1))
	back := product(product(transposed(within), grads), transposed(g.w1))
	g.update(ax, z, gathered, grads, back, lr)
	return loss
}

// average replaces the gathered rows of each batch by those from averaged rows outside of the batch, and
// then the history of these vertices on the rank: h̃ ← (1 - B) h̃ + B ĥ (GraphFM-OB). in has the rank whose
// batch a vertex is in, from 1 on.
func (g *scaled) average(in []int, gathered [][]float64) {
	next := slices.Clone(g.history)
	for q := range g.cuts {
		used, inside := slices.Clone(g.history), square(len(in))
		for u := range in {
			for v := range in {
				if in[v] == q+1 {
					inside[u][v] = g.a[u][v]
				}
			}
		}
		hat := addedUp(product(product(inside, g.x), g.w0), g.b0)
		for u := range in {
			if in[u] == q+1 || !slices.ContainsFunc(inside[u], func(a float64) bool { return a != 0 }) {
				continue
			}
			used[u] = nil
			for j, x := range g.history[u] {
				used[u] = append(used[u], (1-g.share)*x+g.share*max(hat[u][j], 0))
			}
			if slices.ContainsFunc(g.cuts[q], func(cut []int) bool { return slices.Contains(cut, u) }) {
				next[u] = used[u]
			}
		}
		for v := range in {
			if in[v] == q+1 {
				gathered[v] = product([][]float64{g.a[v]}, used)[0]
			}
		}
	}
	g.history = next
}

// softmaxOf returns the gradient of the targets' sum of losses divided by count, and that sum.
func (g *scaled) softmaxOf(logits [][]float64, target []bool, count float64) (grads [][]float64, loss float64) {
	for v, row := range logits {
		grads = append(grads, make([]float64, len(row)))
		if !target[v] {
			continue
		}
		sum, label := 0.0, g.content.Labels[v]
		for _, x := range row {
			sum += math.Exp(x)
		}
		loss -= row[label] - math.Log(sum)
		for j, x := range row {
			grads[v][j] = math.Exp(x) / sum / count
		}
		grads[v][label] -= 1 / count
	}
	return grads, loss
}

// update descends along the gradients of the logits and of the hidden layer's output.
func (g *scaled) update(ax, z, gathered, grads, back [][]float64, lr float64) {
	for v := range back {
		for j := range back[v] {
			if z[v][j] <= 0 {
				back[v][j] = 0
			}
		}
	}
	descend(g.w1, product(transposed(gathered), grads), lr)
	descend([][]float64{g.b1}, [][]float64{columnSums(grads)}, lr)
	descend(g.w0, product(transposed(ax), back), lr)
	descend([][]float64{g.b0}, [][]float64{columnSums(back)}, lr)
}

// epoch trains all batches, in each rank's random order.
func (g *scaled) epoch(seed uint64, epoch int, lr float64) float64 {
	orders, train := make([][]int, g.ranks), 0.0
	for q := range orders {
		orders[q] = rand.New(rand.NewPCG(seed, uint64(epoch)<<32|uint64(q))).Perm(len(g.cuts[q]))
	}
	for _, s := range g.content.Split {
		if s == graph.SplitTrain {
			train++
		}
	}
	loss := 0.0
	for k := range orders[0] {
		chosen := make([]int, g.ranks)
		for q := range chosen {
			chosen[q] = orders[q][k]
		}
		loss += g.step(chosen, lr)
	}
	return loss / train
}

// varied makes an update as VR-GCN does with all neighbours of the same rank sampled:
// neighbours on other ranks are read from the history at the start of the step. targets are
// training vertices, and more are vertices whose rows are computed for other ranks.
func (g *scaled) varied(owner []int, targets, more []int, lr float64) (loss float64) {
	target, fresh := make([]bool, len(owner)), make([]bool, len(owner))
	for _, v := range more {
		fresh[v] = true
	}
	for _, v := range targets {
		target[v] = true
		for u := range owner {
			fresh[u] = fresh[u] || owner[u] == owner[v] && g.a[v][u] != 0
		}
	}
	ax := product(g.a, g.x)
	z := addedUp(product(ax, g.w0), g.b0)
	now := square(len(owner))
	gathered, within := make([][]float64, len(owner)), square(len(owner))
	for u := range now {
		now[u] = g.history[u]
		if fresh[u] {
			now[u] = nil
			for _, x := range z[u] {
				now[u] = append(now[u], max(x, 0))
			}
		}
	}
	for v := range gathered {
		gathered[v] = make([]float64, len(g.history[v]))
		for u, a := range g.a[v] {
			from := g.history[u]
			if owner[u] == owner[v] && target[v] {
				from, within[v][u] = now[u], a
			}
			for j := range from {
				gathered[v][j] += a * from[j]
			}
		}
	}
	grads, loss := g.softmaxOf(addedUp(product(gathered, g.w1), g.b1), target, float64(len(targets)))
	back := product(product(transposed(within), grads), transposed(g.w1))
	g.update(ax, z, gathered, grads, back, lr)
	copy(g.history, now)
	return loss
}
