package engine

import (
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/objective"
)

// headLanes is the maximal number of workers that score pairs with a model.Head. Each lane has
// every headLanes-th piece, and its own sum of the gradients of weights, so the order of
// addition is the same for any number of threads.
const headLanes = 8

// linkHead scores the pairs of a rank.
type linkHead struct {
	lanes      [headLanes]headLane
	idle       chan *headLane      // of scores without gradients
	weights    []float32           // of the pass
	drop       kernels.PairDropout // of the pass, without ids
	grad       []float32           // of this rank
	otherGrads []float32           // contributions of the current pairs to the other ends' gradients [pairs x width]
}

// headLane has the buffers of one worker, for its current pairs of rows of x.
type headLane struct {
	head         *model.Head
	grad         []float32
	rows, others [pairBlock]uint32
	ids          [2][pairBlock]uint32 // of the ends in the dataset, the lesser one first
}

// newScorer returns what scores the pairs of a network.
func (e *Engine) newScorer() (pairScorer, error) {
	if e.Network.Design.ScoreLayers == 0 {
		return dotProduct{}, nil
	}
	at := e.Network.HeadRange()
	h := &linkHead{idle: make(chan *headLane, headLanes), grad: make([]float32, at.Hi-at.Lo)}
	for k := range h.lanes {
		team, err := newTeam(&e.Config, 1)
		if err != nil {
			return nil, err
		}
		h.lanes[k] = headLane{head: e.Network.NewHead(team, pairBlock), grad: make([]float32, len(h.grad))}
		h.idle <- &h.lanes[k]
	}
	return h, nil
}

// HeadFloats returns the number of floats of the ranks' own heads and of the gradients of
// their weights. It is 0 if the dot product scores pairs.
func HeadFloats(net model.Spec) int64 {
	at := net.HeadRange()
	if net.Design.ScoreLayers == 0 {
		return int64(at.Hi - at.Lo)
	}
	return headLanes*net.HeadFloats(pairBlock) + (headLanes+1)*int64(at.Hi-at.Lo)
}

// begin sets the weights and the dropout of a pass, and clears the gradient.
func (h *linkHead) begin(weights []float32, drop kernels.PairDropout) {
	h.weights, h.drop = weights, drop
	for k := range h.lanes {
		clear(h.lanes[k].grad)
	}
}

func (h *linkHead) masks() bool { return h.drop.P > 0 }

func (h *linkHead) weightGrad() []float32 { return h.grad }

func (h *linkHead) otherGrad(_ *pairing, at int, _ uint32) (rows []float32, row uint32, weight []float32) {
	return h.otherGrads, uint32(at), one
}

var one = []float32{1}

// sumGrads adds up the gradients of weights.
func (h *linkHead) sumGrads() {
	clear(h.grad)
	for k := range h.lanes {
		kernels.AddRow(h.grad, h.lanes[k].grad)
	}
}

// loss implements pairScorer.
func (h *linkHead) loss(p *pairing, l *pairList, losses []float64, train bool) {
	if train && !l.mirrored {
		resize(&h.otherGrads, len(l.others)*p.width)
	}
	p.team.Run(headLanes, 1, func(k, _ int) {
		for piece := k; piece < len(losses); piece += headLanes {
			lo := l.lo + piece*pieceOfRows
			losses[piece] = h.pieceLoss(p, &h.lanes[k], l, lo, min(l.hi, lo+pieceOfRows), train)
		}
	})
	if train && l.mirrored { // each pair was added twice
		for k := range h.lanes {
			kernels.ScaleRow(h.lanes[k].grad, 0.5)
		}
	}
}

// pieceLoss computes the loss of a piece, and gradients.
func (h *linkHead) pieceLoss(p *pairing, lane *headLane, l *pairList, lo, hi int, train bool) (loss float64) {
	first, n := int(l.begin[lo]-l.begin[l.lo]), 0
	for v := lo; v < hi; v++ {
		for _, u := range l.pairsOf(v) {
			lane.rows[n], lane.others[n] = uint32(v), u
			if n++; n == pairBlock {
				loss += h.blockLoss(p, lane, l, first, n, train)
				first, n = first+n, 0
			}
		}
	}
	return loss + h.blockLoss(p, lane, l, first, n, train)
}

// blockLoss returns the loss of a lane's n current pairs: pairs first..first+n-1 of the list.
func (h *linkHead) blockLoss(p *pairing, lane *headLane, l *pairList, first, n int, train bool) float64 {
	if n == 0 {
		return 0
	}
	scores := h.laneScores(p, lane, n, h.pairDropout(p, lane, l, first, n))
	if p.evaluates {
		counted := p.buffers.histograms.acquire()
		counted.Count(scores, l.edges)
		p.buffers.histograms.release(counted)
	}
	loss := objective.PairLosses(scores, l.edges, 1/float64(p.total))
	if !train {
		return loss
	}
	grad := lane.head.Grad(lane.grad, h.weights, scores)
	for i := range n {
		g := grad[i*p.width : (i+1)*p.width]
		addProduct(p.row(p.grad, nil, int(lane.rows[i])), g, p.rowOf(lane.others[i]))
		if !l.mirrored {
			to := h.otherGrads[(first+i)*p.width : (first+i+1)*p.width]
			clear(to)
			addProduct(to, g, p.rowOf(lane.rows[i]))
		}
	}
	return loss
}

func (h *linkHead) laneScores(p *pairing, lane *headLane, n int, drop kernels.PairDropout) []float32 {
	row := func(ids *[pairBlock]uint32) func(i int) []float32 {
		return func(i int) []float32 { return p.rowOf(ids[i]) }
	}
	return lane.head.Scores(h.weights, n, row(&lane.rows), row(&lane.others), drop)
}

// pairDropout returns the dropout of a lane's n current pairs. Both ends of a pair sample the
// same masks, since their gradients are computed separately if edges go both ways.
func (h *linkHead) pairDropout(p *pairing, lane *headLane, l *pairList, first, n int) kernels.PairDropout {
	drop := h.drop
	if drop.P == 0 {
		return drop
	}
	for i := range n {
		u, v := p.shard.Own[lane.rows[i]], uint32(0)
		switch at := int(lane.others[i]); {
		case !l.edges:
			v = l.ids[first+i]
		case at < p.shard.NumOwn():
			v = p.shard.Own[at]
		default:
			v = p.shard.Ghosts[at-p.shard.NumOwn()]
		}
		lane.ids[0][i], lane.ids[1][i] = min(u, v), max(u, v)
	}
	drop.Lesser, drop.Greater = lane.ids[0][:], lane.ids[1][:]
	return drop
}

// rowOf returns the loaded row of a local vertex, of this rank or another.
func (p *pairing) rowOf(v uint32) []float32 { return p.x[int(v)*p.width : (int(v)+1)*p.width] }

// scores implements pairScorer.
func (h *linkHead) scores(p *pairing, scores []float32, rows, others []uint32, _ []uint16, first int) {
	lane := <-h.idle
	defer func() { h.idle <- lane }()
	for lo := first; lo < len(scores); lo += pairBlock {
		hi := min(lo+pairBlock, len(scores))
		copy(lane.rows[:], rows[lo:hi])
		copy(lane.others[:], others[lo:hi])
		copy(scores[lo:hi], h.laneScores(p, lane, hi-lo, kernels.PairDropout{}))
	}
}

// addProduct adds the product of x and y, column by column, to dst.
func addProduct(dst, x, y []float32) {
	for j := range dst {
		dst[j] += float32(x[j] * y[j])
	}
}
