package engine

import (
	"siafu/graph"
	"siafu/graph/mapped"
	"siafu/graph/shard"
	"siafu/halo/reach"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/objective"
	"siafu/ranks/world"
)

// pairing is the loss of link prediction: what is trained is that the dot product of two
// rows of the network's output tells whether there is an edge. The edges of a graph are
// trained on together with as many pairs of any vertices, which are drawn anew in each
// epoch (kernels.Stray) and may be edges by chance; each kind has half of the loss.
//
// An edge is its destination's rank's, which has its source as a ghost, and of an edge
// both ways the one towards the higher number counts. A pair that is drawn is the rank's
// that owns the vertex for which it is: what is drawn does not depend on ranks, and their
// gradients differ by the order of sums alone.
type pairing struct {
	objective.Pairing
	comm   world.Comm
	ops    kernels.Ops
	shard  *shard.Shard
	held   *graph.HeldOut
	seed   uint64
	places *reach.Directory
	ghosts *reach.Set
	total  int64 // edges to train on, of all ranks
	chunks int   // of pairs that are drawn, on each rank

	z, room []float32            // rows of the last pass [own x width], and room for them
	rows    []float32            // of other ranks
	grad    []float32            // [own x width]
	grads   []float32            // of rows of other ranks
	seen    *objective.Histogram // of the scores of a pass that is an evaluation, else nil
	found   linkFindings
}

// linkFindings are what a pass has found of links on this rank: sums, like findings.
type linkFindings struct {
	loss, valLoss float64 // shares of the means
	auc           [graph.SplitTest + 1]float64
	counted       float64 // 1 on the rank that has the areas
}

// PairsAtOnce is about how many pairs are drawn before their rows are fetched: it bounds
// the memory of those that are on other ranks.
const PairsAtOnce = 1 << 19

// PairGradients is the purpose of the gradients of the output, which pairs add up.
const PairGradients = "gradients of pairs"

// pairs prepares for the task Links; nil for another, or where no edges are held out.
// Collective over the graph ranks.
func (e *Engine) pairs(a *mapped.Arena) (*pairing, error) {
	if e.HeldOut == nil {
		return nil, nil
	}
	width := e.Network.Dims[e.Network.Layers()]
	p, err := e.pairer(width)
	if err != nil {
		return nil, err
	}
	sh := e.Shard
	if p.ghosts, err = p.places.Ask(sh.Ghosts); err != nil {
		return nil, err
	}
	sums := []int64{0}
	p.edges(func(_, _ int) { sums[0]++ })
	if err := world.SumInt64s(e.Peers, sums); err != nil {
		return nil, err
	}
	p.total, p.held = sums[0], e.HeldOut
	p.grad = mapped.Make[float32](a.For(PairGradients), sh.NumOwn()*width)
	drawn := int64(0)
	for row := range sh.Own {
		drawn += int64(p.draws(row))
	}
	p.chunks, err = p.agree(int((drawn + PairsAtOnce - 1) / PairsAtOnce))
	return p, err
}

// pairer is who scores pairs of any vertices. Collective over the graph ranks.
func (e *Engine) pairer(width int) (*pairing, error) {
	p := &pairing{Pairing: objective.Pairing{Width: width}, comm: e.Peers, ops: e.workers.team(), shard: e.Shard, seed: e.Config.Seed}
	var err error
	p.places, err = reach.New(e.Peers, e.Shard.Own, e.Shard.Vertices)
	return p, err
}

// agree is the largest of all ranks' n. Collective.
func (p *pairing) agree(n int) (int, error) {
	most := []float64{float64(n)}
	err := world.MaxFloat64s(p.comm, most)
	return int(most[0]), err
}

// edges visits the edges that this rank trains on, by local ids.
func (p *pairing) edges(visit func(u, v int)) {
	sh, own := p.shard, p.shard.NumOwn()
	for v, id := range sh.Own {
		for _, u := range sh.In.Row(v) {
			if !sh.Directed {
				other := uint32(0)
				if int(u) < own {
					other = sh.Own[u]
				} else {
					other = sh.Ghosts[int(u)-own]
				}
				if other > id {
					continue
				}
			}
			visit(int(u), v)
		}
	}
}

// draws is how many pairs are drawn for an own vertex: as many of all vertices as there
// are edges.
func (p *pairing) draws(row int) uint32 {
	v, n := int64(p.shard.Own[row]), p.shard.Vertices
	return uint32(kernels.Share(v+1, p.total, n) - kernels.Share(v, p.total, n))
}

// learnPairs finds the loss of the network's output and, in training, its gradient. count asks
// for what an evaluation tells. Collective over the graph ranks, while no exchange of rows
// is under way.
func (s *lockstep) learnPairs(layer int, count bool) error {
	p := s.pairing
	p.found = linkFindings{}
	p.z = kernels.Fetch(p.ops, s.store.Forward(layer, model.Output), &p.room)
	if s.pass.Train {
		clear(p.grad)
	}
	p.seen = nil
	if count {
		p.seen = new(objective.Histogram)
	}
	if p.total > 0 {
		if err := p.learnEdges(s.pass.Train); err != nil {
			return err
		}
		if err := p.learnDrawn(s.pass); err != nil {
			return err
		}
	}
	if count {
		if err := p.evaluate(); err != nil {
			return err
		}
	}
	if !s.pass.Train {
		return nil
	}
	for _, i := range s.intervals {
		to := i.frame.At(model.Do{Layer: layer, Stage: model.Loss}, model.OutputGrad)
		kernels.Write(p.ops, to, p.grad[i.lo*p.Width:i.hi*p.Width])
	}
	return nil
}

// learnEdges is learn of the graph's edges.
func (p *pairing) learnEdges(train bool) error {
	if err := p.fetch(p.ghosts); err != nil {
		return err
	}
	scale := 1 / float64(p.total)
	p.edges(func(u, v int) { p.found.loss += scale * p.learn(u, v, true, train, scale) })
	return p.giveBack(p.ghosts, train)
}

// learnDrawn is learn of the pairs that are drawn for an epoch.
func (p *pairing) learnDrawn(pass model.Pass) error {
	scale, row, k := 1/float64(p.total), 0, uint32(0)
	var others, rows []uint32
	for range p.chunks {
		others, rows = others[:0], rows[:0]
		for row < p.shard.NumOwn() && len(rows) < PairsAtOnce {
			if k == p.draws(row) {
				row, k = row+1, 0
				continue
			}
			others = append(others, kernels.Stray(p.seed, pass.Epoch, p.shard.Own[row], k, p.shard.Vertices))
			rows = append(rows, uint32(row))
			k++
		}
		set, err := p.bring(others)
		if err != nil {
			return err
		}
		for i, v := range others {
			p.found.loss += scale * p.learn(p.local(set, v), int(rows[i]), false, pass.Train, scale)
		}
		if err := p.giveBack(set, pass.Train); err != nil {
			return err
		}
	}
	return nil
}

// learn is the loss of a pair of local vertices, of which v is an own one.
func (p *pairing) learn(u, v int, edge, train bool, scale float64) float64 {
	x, y := p.row(p.z, p.rows, u), p.row(p.z, nil, v)
	score := p.Dot(x, y)
	loss, slope := p.Loss(score, edge)
	if p.seen != nil {
		p.seen.Count(score, edge)
	}
	if train {
		p.Pull(p.row(p.grad, p.grads, u), p.row(p.grad, nil, v), x, y, float32(scale*slope))
	}
	return loss
}

// row is that of a local vertex: an own one, or behind those one of other ranks.
func (p *pairing) row(own, others []float32, at int) []float32 {
	if n := p.shard.NumOwn(); at >= n {
		own, at = others, at-n
	}
	return own[at*p.Width : (at+1)*p.Width]
}

// local is where a vertex is, with the set that has been brought.
func (p *pairing) local(set *reach.Set, v uint32) int {
	if row, ok := p.places.Row(v); ok {
		return int(row)
	}
	return p.shard.NumOwn() + p.places.At(set, v)
}

// bring asks for the vertices of other ranks among some, and fetches their rows.
// Collective.
func (p *pairing) bring(vertices []uint32) (*reach.Set, error) {
	var others []uint32
	for _, v := range vertices {
		if _, ok := p.places.Row(v); !ok {
			others = append(others, v)
		}
	}
	set, err := p.places.Ask(others)
	if err == nil {
		err = p.fetch(set)
	}
	return set, err
}

// fetch brings the rows of a set, and makes room for their gradients. Collective.
func (p *pairing) fetch(set *reach.Set) error {
	n := set.Len() * p.Width
	if cap(p.rows) < n {
		p.rows, p.grads = make([]float32, n), make([]float32, n)
	}
	p.rows, p.grads = p.rows[:n], p.grads[:n]
	clear(p.grads)
	return set.Fetch(p.rows, p.z, p.Width)
}

// giveBack returns the gradients of a set's rows. Collective.
func (p *pairing) giveBack(set *reach.Set, train bool) error {
	if !train {
		return nil
	}
	return set.Return(p.grad, p.grads, p.Width)
}
