package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"

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
	"siafu/ranks/schedule"
	"siafu/ranks/world"
)

// batches are the mini-batches of an epoch (GNNAutoScale, ICML'21, algorithm 1). A batch is a
// contiguous range of the own vertices with a lockstep and a shard. The ghosts of the shard are the
// vertices outside of the batch, of this rank and of other ranks. A history is the source of the ghosts.
// The trainer does the evaluations, loads the weights and passes on the gradients.
//
// In a step every rank trains one of its batches, and gradients are summed over ranks. All
// batches of a step read each other's fresh rows.
//
// Design note: batches are ranges of the shard's order, not separately computed clusters, so
// that the features, labels and ÂX of a batch are views of the rank's. The order is a user's
// choice (--vertex-order).
type batches struct {
	fullGraph
	stored storedRows
	source statsSource
	// next makes the lockstep of a step from pieces of the rank. Collective over the graph ranks.
	next      func(epoch, step int, pieces []int) (*lockstep, error)
	current   *lockstep // this rank's
	outside   int       // number of outside vertices, summed over batches
	estimates bool      // whether the loss of each step estimates that of all training vertices
	predicted predictor
	joined    joinedClusters
	deal
}

// storedRows are the rows that steps store for later steps: a history.Store, or none if each step samples
// its own vertices.
type storedRows interface {
	Pack() []byte
	Unpack(b []byte) error
	Bytes() int64
}

// joinedClusters are the clusters that steps join (Cluster-GCN).
type joinedClusters struct {
	*sample.Clusters
	mostRows int // of a step
}

// deal assigns pieces of the ranks' vertices to the steps of an epoch.
type deal struct {
	pieces        int       // of a rank; assigned to steps again in each epoch
	piecesPerStep int       // pieces of a step
	count         int       // steps of an epoch
	training      [][]int64 // training vertices of each piece, by rank and piece
	orders        [][]int   // of the current epoch, by rank
	firstPieces   []int     // the first piece of each rank's current step
	seed          uint64
}

// newBatches makes the mini-batches of a trainer. Collective over the graph ranks.
func (e *Engine) newBatches(t *trainer, from *Beginning) (stepper, error) {
	kind := e.Config.Batching()
	if kind.Count == 0 {
		return fullGraph{t}, nil
	}
	b := &batches{fullGraph: fullGraph{t}, stored: noRows{}, source: noRows{}, predicted: noRows{}, deal: deal{
		count: kind.Count, pieces: max(kind.Count, kind.Clusters), piecesPerStep: max(kind.Joined, 1) * max(kind.Microbatches, 1),
		seed: e.Config.Seed, firstPieces: make([]int, e.Peers.Size()), orders: make([][]int, e.Peers.Size()),
	}}
	training, err := map[string]func(*batches) (trainingOf, error){
		config.History: e.newHistoryBatches, config.Variates: e.newVariates, config.Neighbour: e.newNeighbours,
		config.Cluster: e.newJoinedClusters, config.Saint: e.newWalks, config.Approximate: e.newApproximate,
	}[kind.Kind](b)
	if err != nil {
		return nil, err
	}
	if t.stale.measures() {
		if err := t.stale.outside.connect(e.Arena); err != nil {
			return nil, err
		}
	}
	if err := b.countTraining(e, training); err != nil {
		return nil, err
	}
	if err := b.noteStatistics(e); err != nil {
		return nil, err
	}
	err = b.restoreHistory(e, from.Rows)
	if from.Rows = nil; err != nil || !e.pipelined() {
		return b, err
	}
	return e.newPipeline(b, from.Step), nil
}

func (b *batches) isFull() bool { return false }

func (b *batches) sources() []statsSource { return []statsSource{b.source} }

func (b *batches) takePredictions() predict.Counts { return b.predicted.TakeCounts() }

func (b *batches) activity() string { return "in mini-batches, " + b.current.activity() }

func (b *batches) hasState() bool { return true }

// pack implements stepper.
func (b *batches) pack() ([]byte, error) { return b.stored.Pack(), nil }

// unpack implements stepper.
func (b *batches) unpack(own []byte) error {
	if len(own) == 0 {
		return nil
	}
	return b.stored.Unpack(own)
}

// packHistory implements stepper.
func (b *batches) packHistory() ([]byte, error) {
	blocks, err := world.Gather(b.t.comm, 0, b.stored.Pack())
	return slices.Concat(blocks...), err
}

// noteStatistics prints the number of vertices outside of batches. A vertex counts once for each
// batch that gathers from it. Collective over the graph ranks.
func (b *batches) noteStatistics(e *Engine) error {
	if e.Config.Batching().Draws() {
		e.Reporter.Note(fmt.Sprintf("mini_batches steps=%d batch=%s\n", b.count, e.Config.Batch))
		return nil
	}
	sums := []int64{b.stored.Bytes(), int64(b.outside)}
	if err := world.SumInt64s(e.Peers, sums); err != nil {
		return err
	}
	e.Reporter.Note(fmt.Sprintf("mini_batches steps=%d samples=%d outside=%d history_bytes=%d format=%s\n",
		b.count, e.Config.Samples(), sums[1], sums[0], e.Config.HistoryFormat))
	return nil
}

// newHistoryBatches cuts the vertices of a trainer into mini-batches. Collective over the graph
// ranks.
func (e *Engine) newHistoryBatches(b *batches) (trainingOf, error) {
	t := b.t
	cuts, parts := make([]history.BatchVertices, b.count), make([]*shard.Shard, b.count)
	bounds, places := evenly(e.Shard.NumOwn(), b.count), make([]int32, e.Shard.NumOwn()+e.Shard.NumGhosts())
	for k := range cuts {
		parts[k], cuts[k] = batchShard(e.Shard, bounds[k], bounds[k+1], places, e.Arena.For(BatchEdges))
	}
	store := e.batchStore(t.store.Vertices())
	stored := e.newHistoryStore(e.Arena)
	rows, err := history.NewBatch(stored, cuts, t.adder, e.Arena)
	if err != nil {
		return nil, err
	}
	b.stored, b.source, b.outside = stored, rows, rows.Outside()
	outside := 0
	for _, c := range cuts {
		outside = max(outside, c.Outside.Len())
	}
	computed := e.newOutsideRows(t, cuts, parts, outside)
	source := b.predictedBatches(e, rows, outside, computed.rows)
	var list []*lockstep
	var template []*interval
	for k, part := range parts {
		intervals := e.batchIntervals(t, store, cuts[k], template)
		s := e.lockstep(store, intervals)
		s.endsInLoss, s.passes, s.update, s.delay, s.stale = true, b.count, t.sumLayer, t.delay, t.stale
		work := graphwork.New(store, part, graphwork.Options{Half: e.Config.Gather == "bf16", OneWay: true}, s.adder, e.Arena)
		s.useOnly(&route{graph: work, ghosts: source, rows: s.ghostRows(true, false)}, e, e.Arena)
		list, template = append(list, s), intervals
	}
	b.current = list[0]
	t.stale.useSets(rows.Set)
	b.next = func(epoch, step int, pieces []int) (*lockstep, error) {
		rows.Begin(epoch, b.firstPieces)
		computed.begin(pieces[0], step)
		return list[pieces[0]], nil
	}
	return func(k int) int64 { return e.countTraining(bounds[k], bounds[k+1]) }, nil
}

// restoreHistory continues with the history of a checkpoint, if the run continues. Collective over
// the graph ranks.
func (b *batches) restoreHistory(e *Engine, rows []byte) error {
	rows, err := world.BcastBlob(e.Peers, rows, 0)
	if err != nil || len(rows) == 0 {
		return err
	}
	return b.stored.Unpack(rows)
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
		if k < len(template) {
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

// trainingOf returns the number of training vertices of a piece of this rank.
type trainingOf func(piece int) int64

// shareOf returns the number of training vertices of each piece if they are divided evenly.
func (b *batches) shareOf(targets []uint32) trainingOf {
	n := len(targets)
	return func(k int) int64 { return int64((k+1)*n/b.pieces - k*n/b.pieces) }
}

// countTraining shares the number of training vertices of each piece with all ranks.
// Collective over the graph ranks.
func (b *batches) countTraining(e *Engine, of trainingOf) error {
	all := make([]int64, e.Peers.Size()*b.pieces)
	mine := all[e.Peers.Rank()*b.pieces:][:b.pieces]
	for k := range mine {
		mine[k] = of(k)
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
func (d *deal) shuffle(epoch int) {
	for q := range d.orders {
		d.orders[q] = rand.New(rand.NewPCG(d.seed, uint64(epoch)<<32|uint64(q))).Perm(d.pieces)
	}
}

// train implements stepper. The loss of a step is the mean over the training vertices of all ranks'
// batches.
func (b *batches) train(epoch, k, step int, _ bool) error {
	t, rank := b.t, b.t.engine.Peers.Rank()
	if k == 0 {
		b.shuffle(epoch)
	}
	if err := t.measureStep(epoch, k, step); err != nil {
		return err
	}
	err := t.timed(schedule.Receive, epoch, func() (err error) {
		pieces, total := b.piecesOf(k, rank)
		if b.current, err = b.next(epoch, step, pieces); err == nil {
			b.current.scaleLoss(b.scale(total))
		}
		return err
	})
	if err != nil {
		return err
	}
	return t.trainPass(b.current, step, false)
}

// piecesOf returns a rank's pieces of the k-th step of an epoch, and the number of training vertices in
// the pieces of all ranks.
func (d *deal) piecesOf(k, rank int) (pieces []int, training int64) {
	lo, hi := k*d.piecesPerStep, min((k+1)*d.piecesPerStep, d.pieces)
	for q, order := range d.orders {
		d.firstPieces[q] = order[lo]
		for _, piece := range order[lo:hi] {
			training += d.training[q][piece]
		}
	}
	return d.orders[rank][lo:hi], training
}

// scale returns the scale of the loss of a step with a number of training vertices: the mean over them.
// The loss of a step that estimates the whole loss counts as a step's part of the epoch's loss, and its
// gradient as the whole one.
func (b *batches) scale(training int64) float32 {
	steps := 1
	if b.estimates {
		steps = b.count
	}
	return float32(float64(steps) / float64(max(training, 1)))
}

// scaleLoss sets the scale of the loss of all intervals.
func (s *lockstep) scaleLoss(scale float32) {
	for _, i := range s.intervals {
		i.loss.Scale = scale
	}
}
