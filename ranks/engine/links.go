package engine

import (
	"slices"

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
// rows of the network's output reports whether there is an edge. The edges of a graph are
// trained on together with as many pairs of any vertices, which are drawn again in each
// epoch (kernels.Stray) and may be edges by chance; each kind has half of the loss.
//
// An edge is its destination's rank's, which has its source as a ghost. Where every edge is
// there both ways, each end's rank finds that end's gradient and half of the loss; else the
// source's gradient returns to its owner. A pair that is drawn is the rank's that owns the
// vertex for which it is: what is drawn does not depend on ranks, and their gradients
// differ by the order of sums alone.
type pairing struct {
	comm   world.Comm
	ops    kernels.Ops
	team   *kernels.Team // of all the rank's workers, which have nothing else to do meanwhile
	shard  *shard.Shard
	held   *graph.HeldOut
	seed   uint64
	width  int // of rows
	places *reach.Directory
	ghosts *reach.Set
	total  int64   // pairs of vertices with an edge to train on, of all ranks
	drawn  []int64 // own vertex v has the drawn pairs drawn[v]..drawn[v+1]-1 [own+1]
	chunks int     // of pairs that are drawn, on each rank

	z, room  []float32            // rows of the last pass [own x width], and room for them
	x        []float32            // these, and behind them those of other ranks that are in hand
	grad     []float32            // [own x width]
	grads    []float32            // of rows of other ranks
	head     *linkHead            // nil where the dot product scores pairs
	most     int64                // pairs in hand, about
	weights  []float32            // of the head, in those of the network
	hand     hand                 // room of the pairs that are in hand
	seen     *objective.Histogram // of the scores of an evaluation, by itself: MPI takes no memory that Go pointers lie beside
	counting bool                 // this pass is an evaluation
	moved    int64                // bytes that training has brought and returned since they were taken
	found    linkFindings
}

// linkFindings are what a pass has found of links on this rank: sums, like findings.
type linkFindings struct {
	loss, valLoss float64 // shares of the means
	auc           [graph.SplitTest + 1]float64
	counted       float64 // 1 on the rank that has the areas
}

// PairsAtOnce is the approximate number of pairs that are sampled before their rows are
// fetched. It bounds the memory for rows of other ranks.
const PairsAtOnce = 1 << 19

// PairGradients is the purpose of the memory for the gradient of the output, the sum over
// pairs.
const PairGradients = "gradients of pairs"

// PairsInHand returns the approximate number of pairs of a training pass that are sampled
// before their rows are fetched. It is smaller if each pair has its own gradient.
func PairsInHand(net model.Spec) int64 {
	if net.Design.ScoreLayers == 0 {
		return PairsAtOnce
	}
	return max(FloatsAtOnce/int64(net.Dims[net.Layers()]), pieceOfPairs)
}

// FloatsAtOnce bounds the floats in gradients of pairs if each pair has its own row.
const FloatsAtOnce = 1 << 23

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
	sums := []int64{int64(len(sh.In.Cols))}
	if err := world.SumInt64s(e.Peers, sums); err != nil {
		return nil, err
	}
	if p.total, p.held = sums[0], e.HeldOut; !sh.Directed {
		p.total /= 2
	}
	p.grad = mapped.Make[float32](a.For(PairGradients), sh.NumOwn()*width)
	p.drawn = make([]int64, sh.NumOwn()+1)
	for row, v := range sh.Own {
		p.drawn[row+1] = p.drawn[row] + kernels.Share(int64(v)+1, p.total, sh.Vertices) - kernels.Share(int64(v), p.total, sh.Vertices)
	}
	for lo := 0; lo < sh.NumOwn(); lo = p.until(p.drawn, lo) {
		p.chunks++
	}
	p.chunks, err = p.agree(p.chunks)
	return p, err
}

// pairer is who scores pairs of any vertices. Collective over the graph ranks.
func (e *Engine) pairer(width int) (*pairing, error) {
	p := &pairing{seen: new(objective.Histogram), comm: e.Peers, ops: e.workers.team(), team: e.packers, shard: e.Shard, width: width, seed: e.Config.Seed}
	p.most = PairsInHand(e.Network)
	var err error
	if p.head, err = e.newLinkHead(); err != nil {
		return nil, err
	}
	p.places, err = reach.New(e.Peers, e.Shard.Own, e.Shard.Vertices)
	return p, err
}

// agree is the largest of all ranks' n. Collective.
func (p *pairing) agree(n int) (int, error) {
	most := []float64{float64(n)}
	err := world.MaxFloat64s(p.comm, most)
	return int(most[0]), err
}

// learnPairs finds the loss of the network's output and, in training, its gradient. count asks
// for what an evaluation tells. Collective over the graph ranks, while no exchange of rows
// is under way.
func (s *lockstep) learnPairs(layer int, count bool) error {
	p := s.pairing
	p.found, p.counting = linkFindings{}, count
	p.hold(s.store.Forward(layer, model.Output))
	if p.head != nil {
		p.head.begin(p.weights, s.store.Network.Spec.PairDropout(s.pass))
	}
	if s.pass.Train {
		clear(p.grad)
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
	if p.head != nil {
		p.head.end()
	}
	for _, i := range s.intervals {
		to := i.frame.At(model.Do{Layer: layer, Stage: model.Loss}, model.OutputGrad)
		kernels.Write(p.ops, to, p.grad[i.lo*p.width:i.hi*p.width])
	}
	return nil
}

// take takes the rows, and the weights, of a trainer's last pass, to score pairs.
func (p *pairing) take(t *trainer) {
	p.hold(t.logits())
	if at := t.net.HeadRange(); p.head != nil {
		p.head.begin(t.flat[at.Lo:at.Hi], kernels.PairDropout{})
	}
}

// hold takes the rows of a pass.
func (p *pairing) hold(rows kernels.Mat) {
	p.z = kernels.Fetch(p.ops, rows, &p.room)
	p.x = append(p.x[:0], p.z...)
}

// learnEdges learns from the graph's edges.
func (p *pairing) learnEdges(train bool) error {
	if err := p.fetch(p.ghosts); err != nil {
		return err
	}
	p.count(p.ghosts, 0, train, p.shard.Directed)
	in, own := p.shard.In, p.shard.NumOwn()
	l := pairList{begin: in.Offsets, hi: own, others: in.Cols, edges: true, mirrored: !p.shard.Directed}
	if l.mirrored {
		p.learn(l, train)
		return nil
	}
	for lo := 0; lo < own; lo = l.hi {
		l.lo, l.hi = lo, p.until(in.Offsets, lo)
		l.others = in.Cols[in.Offsets[lo]:in.Offsets[l.hi]]
		p.learn(l, train)
	}
	return p.giveBack(p.ghosts, train)
}

// learnDrawn learns from the pairs that are drawn for an epoch.
func (p *pairing) learnDrawn(pass model.Pass) error {
	l := pairList{begin: p.drawn}
	for range p.chunks {
		l.lo, l.hi = l.hi, p.until(p.drawn, l.hi)
		l.others = sized(&p.hand.others, int(p.drawn[l.hi]-p.drawn[l.lo]))
		p.overRows(l.lo, l.hi, func(_, lo, hi int) {
			for v := lo; v < hi; v++ {
				for k := range l.of(v) {
					l.of(v)[k] = kernels.Stray(p.seed, pass.Epoch, p.shard.Own[v], uint32(k), p.shard.Vertices)
				}
			}
		})
		if p.head != nil && p.head.drop.P > 0 {
			copy(sized(&p.hand.ids, len(l.others)), l.others)
			l.ids = p.hand.ids
		}
		set, err := p.bring(l.others)
		if err != nil {
			return err
		}
		p.count(set, 1, pass.Train, true)
		p.learn(l, pass.Train)
		if err := p.giveBack(set, pass.Train); err != nil {
			return err
		}
	}
	return nil
}

// row is that of a local vertex: an own one, or behind those one of other ranks.
func (p *pairing) row(own, others []float32, at int) []float32 {
	if n := p.shard.NumOwn(); at >= n {
		own, at = others, at-n
	}
	return own[at*p.width : (at+1)*p.width]
}

// bring asks for the vertices of other ranks among some, fetches their rows, and makes
// local ids of all. Collective.
func (p *pairing) bring(vertices []uint32) (*reach.Set, error) {
	var others []uint32
	for _, v := range vertices {
		if _, ok := p.places.Row(v); !ok {
			others = append(others, v)
		}
	}
	set, err := p.places.Ask(others)
	if err != nil {
		return nil, err
	}
	p.team.Run(len(vertices), pieceOfPairs, func(lo, hi int) {
		for i, v := range vertices[lo:hi] {
			row, ok := p.places.Row(v)
			if !ok {
				row = uint32(p.shard.NumOwn() + p.places.At(set, v))
			}
			vertices[lo+i] = row
		}
	})
	return set, p.fetch(set)
}

// fetch brings the rows of a set behind the own ones, and makes room for their gradients.
// Collective.
func (p *pairing) fetch(set *reach.Set) error {
	own, n := len(p.z), set.Len()*p.width
	p.x = slices.Grow(p.x[:own], n)[:own+n]
	clear(sized(&p.grads, n))
	return set.Fetch(p.x[own:], p.z, p.width)
}

// giveBack returns the gradients of a set's rows. Collective.
func (p *pairing) giveBack(set *reach.Set, train bool) error {
	if !train {
		return nil
	}
	return set.Return(p.grad, p.grads, p.width)
}

// count counts what a training pass moves for a set: so many numbers by which each row is asked
// for, the row as float32 and, where its gradient returns, that. Rows that come are counted and
// not those that go, which over all ranks are as many.
func (p *pairing) count(set *reach.Set, numbers int, train, returns bool) {
	columns := numbers + p.width
	if returns {
		columns += p.width
	}
	if train {
		p.moved += 4 * int64(columns) * int64(set.Len())
	}
}

// takeMoved is what training has moved since the last call, in bytes. A nil pairing has moved
// nothing.
func (p *pairing) takeMoved() (bytes int64) {
	if p != nil {
		bytes, p.moved = p.moved, 0
	}
	return bytes
}
