package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/history"
	"siafu/halo/predict"
	"siafu/halo/sample"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/kernels/task"
	"siafu/ranks/config"
	"siafu/ranks/graphwork"
	"siafu/ranks/world"
)

// batches are the mini-batches of an epoch (GNNAutoScale, ICML'21, algorithm 1). A batch is a
// contiguous range of the own vertices with a lockstep and a shard. The ghosts of the shard are the
// vertices outside of the batch, of this rank and of other ranks. A history is the source of the ghosts.
// The trainer does the evaluations, loads the weights and pushes the gradients.
//
// In a step every rank trains one of its batches, and gradients are summed over ranks. All
// batches of a step read each other's fresh rows.
//
// Design note: batches are ranges of the shard's order, not separately computed clusters, so
// that the features, labels and ÂX of a batch are views of the rank's. The order is a user's
// choice (--vertex-order).
type batches struct {
	store    *history.Store // nil without a history
	source   statsSource
	clusters *history.Batch // the source of list, nil for sampled steps
	list     []*lockstep
	// sampleStep makes the lockstep of a step from pieces of the rank, nil with list.
	// Collective over the graph ranks.
	sampleStep     func(epoch, step int, pieces []int) (*lockstep, error)
	joinedClusters *sample.Clusters // nil except with joined clusters
	estimates      bool             // whether the loss of each step estimates that of all training vertices
	pieces         int              // of a rank; assigned to steps again in each epoch
	piecesPerStep  int              // pieces of a step
	count          int              // steps of an epoch
	training       [][]int64        // training vertices of each piece, by rank and piece
	orders         [][]int          // of the current epoch, by rank
	firstPieces    []int            // the first piece of each rank's current step
	seed           uint64
	current        *lockstep       // this rank's
	predictor      *predict.Source // nil without predictions
	computed       *outsideRows    // nil without momentum
}

// newBatches makes the mini-batches of a trainer, nil without mini-batches. Collective over
// the graph ranks.
func (e *Engine) newBatches(t *trainer) (*batches, error) {
	kind := e.Config.Batching()
	if kind.Count == 0 {
		return nil, nil
	}
	b := &batches{
		count: kind.Count, pieces: max(kind.Count, kind.Clusters), piecesPerStep: max(kind.Joined, 1) * max(kind.Microbatches, 1),
		seed: e.Config.Seed, firstPieces: make([]int, e.Peers.Size()), orders: make([][]int, e.Peers.Size()),
	}
	update := func(layer int) error {
		return t.source.Push(b.current.pass.Epoch, layer, t.gradient(b.current.intervals, layer, t.grad))
	}
	prepare := map[string]func(*trainer, *batches, func(int) error) error{
		config.History: e.newHistoryBatches, config.Variates: e.newVariates, config.Neighbour: e.newNeighbours,
		config.Cluster: e.newJoinedClusters,
		config.Saint:   e.newWalks, config.Approximate: e.newApproximate,
	}[kind.Kind]
	if !kind.Draws() {
		b.store = e.newHistoryStore(e.Arena)
	}
	if err := prepare(t, b, update); err != nil {
		return nil, err
	}
	if t.stale != nil {
		if err := t.stale.outside.connect(e.Arena); err != nil {
			return nil, err
		}
	}
	if err := b.countTraining(e); err != nil {
		return nil, err
	}
	if err := b.noteStatistics(e); err != nil {
		return nil, err
	}
	return b, b.restoreHistory(e)
}

// noteStatistics prints the number of vertices outside of batches. A vertex counts once for each
// batch that gathers from it. Collective over the graph ranks.
func (b *batches) noteStatistics(e *Engine) error {
	if b.store == nil {
		e.Reporter.Note(fmt.Sprintf("mini_batches steps=%d batch=%s\n", b.count, e.Config.Batch))
		return nil
	}
	sums := []int64{b.store.Bytes(), 0}
	if b.clusters != nil {
		sums[1] = int64(b.clusters.Outside())
	}
	if err := world.SumInt64s(e.Peers, sums); err != nil {
		return err
	}
	e.Reporter.Note(fmt.Sprintf("mini_batches steps=%d samples=%d outside=%d history_bytes=%d format=%s\n",
		b.count, e.Config.Samples(), sums[1], sums[0], e.Config.HistoryFormat))
	return nil
}

// newHistoryBatches cuts the vertices of a trainer into mini-batches. Collective over the graph
// ranks.
func (e *Engine) newHistoryBatches(t *trainer, b *batches, update func(layer int) error) error {
	cuts, parts := make([]history.BatchVertices, b.count), make([]*shard.Shard, b.count)
	bounds, places := evenly(e.Shard.NumOwn(), b.count), make([]int32, e.Shard.NumOwn()+e.Shard.NumGhosts())
	for k := range cuts {
		parts[k], cuts[k] = batchShard(e.Shard, bounds[k], bounds[k+1], places, e.Arena.For(BatchEdges))
	}
	store := e.batchStore(t.store.Vertices())
	var err error
	if b.clusters, err = history.NewBatch(b.store, cuts, t.adder, e.Arena); err != nil {
		return err
	}
	b.source = b.clusters
	outside := 0
	for _, c := range cuts {
		outside = max(outside, c.Outside.Len())
	}
	if b.computed = e.newOutsideRows(cuts, parts, outside, e.Arena); b.computed != nil {
		b.computed.place(t)
	}
	source := b.predictedBatches(e, b.clusters, outside, b.computed.rows)
	var template []*interval
	for k, part := range parts {
		list := e.batchIntervals(t, store, cuts[k], template)
		s := e.lockstep(store, list)
		s.endsInLoss, s.steps, s.update, s.delay, s.stale = true, b.count, update, t.delay, t.stale
		newRoute := &route{ghosts: source, keepsGradients: true}
		newRoute.graph = graphwork.New(store, part, graphwork.Options{Half: e.Config.Gather == "bf16", OneWay: true}, s.adder, e.Arena)
		s.route, s.training, s.exact = newRoute, newRoute, newRoute
		s.build(newRoute, e.Config.Mode == "nopipe")
		b.list, template = append(b.list, s), list
	}
	b.current = b.list[0]
	if t.stale != nil {
		t.stale.outside.set = b.clusters.Set
	}
	return nil
}

// restoreHistory continues with the history of a checkpoint, if the run continues. Collective over
// the graph ranks.
func (b *batches) restoreHistory(e *Engine) error {
	rows, err := world.BcastBlob(e.Peers, e.HistoryRows, 0)
	e.HistoryRows = nil
	if err != nil || len(rows) == 0 || b.store == nil {
		return err
	}
	return b.store.Unpack(rows)
}

// packHistory returns the history of all ranks, on rank 0; nil without a history. Collective
// over the graph ranks.
func (t *trainer) packHistory() ([]byte, error) {
	if t.batches == nil || t.batches.store == nil {
		return nil, nil
	}
	blocks, err := world.Gather(t.comm, 0, t.batches.store.Pack())
	return bytes.Join(blocks, nil), err
}

// BatchEdges is the purpose of the memory for edges of mini-batches.
const BatchEdges = "edges of mini-batches"

// newHistoryStore allocates the history of the batches' rows in a.
func (e *Engine) newHistoryStore(a *mapped.Arena) *history.Store {
	return history.New(history.Options{
		Comm: e.Peers, Shapes: e.historyShapes(), Plan: halo.NewPlan(e.Shard), Format: e.Config.HistoryRows(),
		Seed: e.Config.Seed, Team: e.packers,
	}, a)
}

// historyShapes returns the layers with a history: all that gather.
func (e *Engine) historyShapes() (list []halo.Shape) {
	net := e.network()
	for l := range net.Layers {
		if net.Gathers(l) {
			list = append(list, halo.Shape{Layer: l, Width: net.Layers[l].GatherWidth()})
		}
	}
	return list
}

// batchStore allocates the values of the largest batch, which all batches reuse.
func (e *Engine) batchStore(in model.Vertices) *model.Store {
	count := e.Config.Batches()
	s := model.NewStore(e.network(), in.Part(0, (e.Shard.NumOwn()+count-1)/count), passMemory(e.Config),
		e.workers.teams[0], e.Arena.For(Activations))
	e.values = Values{Bytes: s.Bytes(), KeptBytes: 4 * int64(e.network().Columns(model.InStep)) * int64(s.Rows)}
	return s
}

// batchIntervals divides a batch into intervals. If template has the intervals of another batch, the
// new intervals share all memory of the template that belongs to no vertex.
func (e *Engine) batchIntervals(t *trainer, store *model.Store, c history.BatchVertices, template []*interval) []*interval {
	sh, ops := e.Shard, e.workers.teams[0]
	count := e.workers.intervals(&e.Config, e.Network, store.Rows, 0)
	var cached kernels.Mat
	if e.Network.CacheInput {
		cached = t.store.Forward(0, model.Gathered)
	}
	labels, split := kernels.Place(ops, e.Arena, sh.Labels), kernels.Place(ops, e.Arena, sh.Split)
	var list []*interval
	for k := range count {
		i := &interval{index: k, lo: k * c.Rows / count, hi: (k + 1) * c.Rows / count, ops: e.workers.newOps()}
		var frame *model.Frame
		if template != nil {
			frame = template[k].frame
		}
		first := c.First + i.lo
		i.frame = store.Batch(t.store.Vertices(), first, i.hi-i.lo, i.lo, cached, i.ops, t.sharedWeights, frame)
		i.loss = task.Loss{Target: e.targetsOf(first, c.First+i.hi), Labels: labels.Part(first, c.First+i.hi),
			Split: split.Part(first, c.First+i.hi)}
		list = append(list, i)
	}
	return list
}

// countTraining shares the number of training vertices of each piece with all ranks.
// Collective over the graph ranks.
func (b *batches) countTraining(e *Engine) error {
	all := make([]int64, e.Peers.Size()*b.pieces)
	mine := all[e.Peers.Rank()*b.pieces:][:b.pieces]
	switch e.Config.Batching().Kind {
	case config.History:
		bounds := evenly(e.Shard.NumOwn(), b.pieces)
		for k := range mine {
			mine[k] = e.countTraining(bounds[k], bounds[k+1])
		}
	case config.Cluster:
		b.countClusters(e, mine)
	case config.Saint:
		for k := range mine {
			mine[k] = int64(len(e.trainVertices()))
		}
	default: // training vertices are divided evenly
		n := len(e.trainVertices())
		for k := range mine {
			mine[k] = int64((k+1)*n/b.pieces - k*n/b.pieces)
		}
	}
	if err := world.SumInt64s(e.Peers, all); err != nil {
		return err
	}
	for q := range b.firstPieces {
		b.training = append(b.training, all[q*b.pieces:(q+1)*b.pieces])
	}
	return nil
}

// countTraining counts the training vertices among the own vertices lo..hi-1.
func (e *Engine) countTraining(lo, hi int) (n int64) {
	for _, split := range e.Shard.Split[lo:hi] {
		if int(split) == splits[0] {
			n++
		}
	}
	return n
}

// shuffle samples each rank's order of pieces in an epoch.
func (b *batches) shuffle(epoch int) {
	for q := range b.orders {
		b.orders[q] = rand.New(rand.NewPCG(b.seed, uint64(epoch)<<32|uint64(q))).Perm(b.pieces)
	}
}

// beginStep starts the k-th step of the epoch; step counts the run's steps. Its loss is the
// mean over the training vertices of all ranks' batches. Collective over the graph ranks.
func (b *batches) beginStep(epoch, k, step, rank int) error {
	pieces, scale := b.piecesOf(k, rank)
	if b.sampleStep != nil {
		var err error
		if b.current, err = b.sampleStep(epoch, step, pieces); err != nil {
			return err
		}
	} else {
		b.current = b.list[b.firstPieces[rank]]
		b.clusters.Begin(epoch, b.firstPieces)
		b.computed.begin(b.firstPieces[rank], step)
	}
	b.current.scaleLoss(scale)
	return nil
}

// piecesOf returns a rank's pieces of the k-th step of an epoch, and the scale of the loss: 1 divided by
// the number of training vertices in the pieces of all ranks. The loss of a step that estimates the
// whole loss counts as a step's part of the epoch's loss, and its gradient as the whole one.
func (b *batches) piecesOf(k, rank int) (pieces []int, scale float32) {
	total, lo, hi := int64(0), k*b.piecesPerStep, min((k+1)*b.piecesPerStep, b.pieces)
	for q, order := range b.orders {
		b.firstPieces[q] = order[lo]
		for _, piece := range order[lo:hi] {
			total += b.training[q][piece]
		}
	}
	steps := 1
	if b.estimates {
		steps = b.count
	}
	return b.orders[rank][lo:hi], float32(float64(steps) / float64(max(total, 1)))
}

// scaleLoss sets the scale of the loss of all intervals.
func (s *lockstep) scaleLoss(scale float32) {
	for _, i := range s.intervals {
		i.loss.Scale = scale
	}
}

// activity describes the current lockstep.
func (t *trainer) activity() string {
	if t.batches != nil {
		return "in mini-batches, " + t.batches.current.activity()
	}
	return t.lockstep.activity()
}
