package engine

import (
	"slices"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/objective"
	"siafu/ranks/world"
)

// pairing is the loss of link prediction: the dot product of two rows of the network's output
// is trained to predict an edge. Training uses the edges of a graph and the same number of
// random pairs of vertices, which are sampled again in each epoch (kernels.SampleNegative) and
// may be edges by chance. Each kind has half of the loss.
//
// An edge belongs to the rank of its destination, which has the source as a ghost. If every edge
// exists in both directions, the rank of each end computes the gradient of that end and half of the
// loss. Otherwise the gradient of the source returns to its owner. A sampled pair belongs to the
// owner of the vertex for which it was sampled. The samples do not depend on the number of ranks;
// only the order of sums changes the gradients. Relational graphs have a tripleScorer instead.
type pairing struct {
	comm      world.Comm
	ops       kernels.Ops
	team      *kernels.Team // of all the rank's workers, which are idle otherwise
	shard     *shard.Shard
	held      *graph.HeldOut
	seed      uint64
	directory *halo.Directory
	ghosts    *halo.RowSet
	pairSamples
	pairRows
	scorer     scorer
	pairs      pairScorer    // the scorer, unless the graph is relational
	triples    *tripleScorer // the scorer if the graph is relational
	weights    []float32     // of the scorer: a part of the network's flat weights
	buffers    pairBuffers   // of the current pairs
	movedBytes int64         // bytes that training fetched and returned since takeMoved
	pairEvaluation
}

// pairSamples are the pairs on which a rank trains.
type pairSamples struct {
	total          int64   // pairs of vertices with an edge to train on, of all ranks
	sampledOffsets []int64 // own vertex v has the sampled pairs sampledOffsets[v]..sampledOffsets[v+1]-1 [own+1]
	chunks         int     // number of chunks of sampled pairs, the same on each rank
	maxPairs       int64   // approximate number of pairs at a time
}

// pairRows are the rows of the ends of pairs, and their gradients.
type pairRows struct {
	width        int
	z, rowBuffer []float32 // rows of the last pass [own x width], and their buffer
	x            []float32 // z, followed by the fetched rows of other ranks
	grad         []float32 // [own x width]
	grads        []float32 // of rows of other ranks
}

// pairEvaluation has the results of a pass.
type pairEvaluation struct {
	trainHistogram *objective.Histogram // of an evaluation's scores; allocated separately, because MPI memory must not adjoin Go pointers
	evaluates      bool                 // this pass is an evaluation
	found          linkFindings
}

// linkFindings are a pass's results of links on this rank: sums, like findings.
type linkFindings struct {
	loss, valLoss float64 // parts of the means
	auc           [graph.SplitTest + 1]float64
	counted       float64 // 1 on the rank with the areas
}

// PairsPerChunk is the approximate number of pairs that are sampled before their rows are
// fetched. It bounds the memory for rows of other ranks.
const PairsPerChunk = 1 << 19

// PairGradients is the purpose of the memory for the gradient of the output, the sum over
// pairs.
const PairGradients = "gradients of pairs"

// MaxChunkPairs returns the approximate number of pairs of a training pass that are sampled
// before their rows are fetched. It is smaller if each pair has its own gradient.
func MaxChunkPairs(net model.Spec) int64 {
	if net.Design.ScoreLayers == 0 {
		return PairsPerChunk
	}
	return max(FloatsPerChunk/int64(net.Dims[net.Layers()]), pieceOfPairs)
}

// FloatsPerChunk bounds the floats in gradients of pairs if each pair has its own row.
const FloatsPerChunk = 1 << 23

// preparePairs prepares the task Links. Collective over the graph ranks.
func (e *Engine) preparePairs(a *mapped.Arena) (*pairing, error) {
	width := e.Network.Dims[e.Network.Layers()]
	p, err := e.newPairing(width)
	if err != nil {
		return nil, err
	}
	sh := e.Shard
	if p.ghosts, err = p.directory.Request(sh.Ghosts); err != nil {
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
	if p.triples != nil {
		p.prepareTriples()
		p.total = e.Meta.Links.Train
		most := ChunkTriples(p.triples.negatives)
		p.chunks, err = p.maxOverRanks((len(p.triples.list) + most - 1) / most)
		return p, err
	}
	p.sampledOffsets = make([]int64, sh.NumOwn()+1)
	for row, v := range sh.Own {
		p.sampledOffsets[row+1] = p.sampledOffsets[row] + kernels.Share(int64(v)+1, p.total,
			sh.Vertices) - kernels.Share(int64(v), p.total, sh.Vertices)
	}
	for lo := 0; lo < sh.NumOwn(); lo = p.chunkEnd(p.sampledOffsets, lo) {
		p.chunks++
	}
	p.chunks, err = p.maxOverRanks(p.chunks)
	return p, err
}

// newPairing returns a pairing that scores pairs of any vertices. Collective over the graph
// ranks.
func (e *Engine) newPairing(width int) (*pairing, error) {
	p := &pairing{comm: e.Peers, ops: e.workers.newOps(), team: e.packers, shard: e.Shard, seed: e.Config.Seed}
	p.trainHistogram, p.width, p.maxPairs = new(objective.Histogram), width, MaxChunkPairs(e.Network)
	var err error
	if e.Meta.Relations != nil && e.Network.Design.ScoreLayers == 0 {
		p.triples = e.newTripleScorer(width)
		p.scorer = p.triples
	} else if p.pairs, err = e.newScorer(); err != nil {
		return nil, err
	} else {
		p.scorer = p.pairs
	}
	p.directory, err = halo.NewDirectory(e.Peers, e.Shard.Own, e.Shard.Vertices)
	return p, err
}

// maxOverRanks returns the maximum of n over all ranks. Collective.
func (p *pairing) maxOverRanks(n int) (int, error) {
	most := []float64{float64(n)}
	err := world.MaxFloat64s(p.comm, most)
	return int(most[0]), err
}

// computePairLoss computes the loss of the network's output and, in training, its gradient.
// count requests the results of an evaluation. Collective over the graph ranks, while no
// exchange of rows is in progress.
func (s *lockstep) computePairLoss(layer int, count bool) error {
	p := s.pairing
	p.found, p.evaluates = linkFindings{}, count
	p.loadRows(s.store.Forward(layer, model.Output))
	p.scorer.begin(p.weights, s.store.Network.Spec.PairDropout(s.pass.Pass))
	if s.pass.Train {
		clear(p.grad)
	}
	if p.triples != nil {
		if err := p.addTripleLoss(s.pass.Pass); err != nil {
			return err
		}
	} else if p.total > 0 {
		if err := p.addEdgeLoss(s.pass.Train); err != nil {
			return err
		}
		if err := p.addSampledLoss(s.pass.Pass); err != nil {
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
	p.scorer.sumGrads()
	for _, i := range s.intervals {
		to := i.frame.At(model.Do{Layer: layer, Stage: model.Loss}, model.OutputGrad)
		kernels.Write(p.ops, to, p.grad[i.lo*p.width:i.hi*p.width])
	}
	return nil
}

// loadPass loads the rows and weights of a trainer's last pass, to score pairs.
func (p *pairing) loadPass(t *trainer) {
	p.loadRows(t.logits())
	at := t.net.HeadRange()
	p.scorer.begin(t.flat[at.Lo:at.Hi], kernels.PairDropout{})
}

func (p *pairing) loadRows(rows kernels.Mat) {
	p.z = kernels.Fetch(p.ops, rows, &p.rowBuffer)
	p.x = append(p.x[:0], p.z...)
}

// addEdgeLoss adds the loss of the graph's edges.
func (p *pairing) addEdgeLoss(train bool) error {
	if err := p.fetchSet(p.ghosts); err != nil {
		return err
	}
	p.countMoved(p.ghosts, 0, train, p.shard.Directed)
	in, own := p.shard.In, p.shard.NumOwn()
	l := pairList{begin: in.Offsets, hi: own, others: in.Cols, edges: true, mirrored: !p.shard.Directed}
	if l.mirrored {
		p.addPairLoss(l, train)
		return nil
	}
	for lo := 0; lo < own; lo = l.hi {
		l.lo, l.hi = lo, p.chunkEnd(in.Offsets, lo)
		l.others = in.Cols[in.Offsets[lo]:in.Offsets[l.hi]]
		p.addPairLoss(l, train)
	}
	return p.returnGrads(p.ghosts, train)
}

func (p *pairing) addSampledLoss(pass model.Pass) error {
	l := pairList{begin: p.sampledOffsets}
	for range p.chunks {
		l.lo, l.hi = l.hi, p.chunkEnd(p.sampledOffsets, l.hi)
		l.others = resize(&p.buffers.others, int(p.sampledOffsets[l.hi]-p.sampledOffsets[l.lo]))
		p.forEachPiece(l.lo, l.hi, func(_, lo, hi int) {
			for v := lo; v < hi; v++ {
				for k := range l.pairsOf(v) {
					l.pairsOf(v)[k] = kernels.SampleNegative(p.seed, pass.Epoch, p.shard.Own[v], uint32(k), p.shard.Vertices)
				}
			}
		})
		if p.pairs.masks() {
			copy(resize(&p.buffers.ids, len(l.others)), l.others)
			l.ids = p.buffers.ids
		}
		set, err := p.fetchRows(l.others)
		if err != nil {
			return err
		}
		p.countMoved(set, 1, pass.Train, true)
		p.addPairLoss(l, pass.Train)
		if err := p.returnGrads(set, pass.Train); err != nil {
			return err
		}
	}
	return nil
}

// row returns the row of a local vertex. own has the rows of own vertices, others the rows of vertices
// of other ranks.
func (p *pairing) row(own, others []float32, at int) []float32 {
	if n := p.shard.NumOwn(); at >= n {
		own, at = others, at-n
	}
	return own[at*p.width : (at+1)*p.width]
}

// fetchRows requests the vertices that other ranks own, fetches their rows, and converts all
// vertices to local ids. Collective.
func (p *pairing) fetchRows(vertices []uint32) (*halo.RowSet, error) {
	var others []uint32
	for _, v := range vertices {
		if _, ok := p.directory.Row(v); !ok {
			others = append(others, v)
		}
	}
	set, err := p.directory.Request(others)
	if err != nil {
		return nil, err
	}
	p.team.Run(len(vertices), pieceOfPairs, func(lo, hi int) {
		for i, v := range vertices[lo:hi] {
			row, ok := p.directory.Row(v)
			if !ok {
				row = uint32(p.shard.NumOwn() + p.directory.At(set, v))
			}
			vertices[lo+i] = row
		}
	})
	return set, p.fetchSet(set)
}

// fetchSet appends the rows of a set to the own rows, and allocates their gradients.
// Collective.
func (p *pairing) fetchSet(set *halo.RowSet) error {
	own, n := len(p.z), set.Len()*p.width
	p.x = slices.Grow(p.x[:own], n)[:own+n]
	clear(resize(&p.grads, n))
	return set.Fetch(p.x[own:], p.z, p.width)
}

// returnGrads returns the gradients of a set's rows. Collective.
func (p *pairing) returnGrads(set *halo.RowSet, train bool) error {
	if !train {
		return nil
	}
	return set.Return(p.grad, p.grads, p.width)
}

// countMoved counts a training pass's transfers for a set: numbers values to request each row,
// the row as float32 and, if returned, its gradient. Only received rows are counted: over all
// ranks, sent rows are equally many.
func (p *pairing) countMoved(set *halo.RowSet, numbers int, train, returns bool) {
	columns := numbers + p.width
	if returns {
		columns += p.width
	}
	if train {
		p.movedBytes += 4 * int64(columns) * int64(set.Len())
	}
}

// takeMoved returns the bytes that training has moved since the last call.
func (p *pairing) takeMoved() (bytes int64) {
	bytes, p.movedBytes = p.movedBytes, 0
	return bytes
}
