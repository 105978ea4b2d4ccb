package forecast

import (
	"cmp"
	"errors"
	"runtime"
	"slices"
	"strings"

	"siafu/cuda"
	"siafu/graph"
	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/predict"
	"siafu/halo/refresh"
	"siafu/internal/mapped"
	"siafu/internal/size"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/engine"
	"siafu/ranks/graphwork"
	"siafu/ranks/tensor"
)

// Program is the memory of a process without data: the program's pages, Go's runtime with its
// heap, and Open MPI. Measured runs on small graphs had 32 to 43 MB of it.
const Program int64 = 48 << 20

// Names of terms, in addition to those of the packages that make the arrays.
const (
	Kept      = engine.CachedInput
	weights   = "weights and their gradients"
	optimiser = "optimiser state"
	averaged  = "own weights and state, for others"
	intervals = "tasks of intervals"
	targets   = "shard: targets"

	onDevice     = "arrays, workspaces and plans of gathers on the GPU"
	besideSketch = "weights and gradients on the GPU"

	intervalsOfBatches = "gradients of mini-batches"
)

// epochs are the terms that are first touched in the first epoch.
var epochs = []string{engine.Activations, model.Streamed, graphwork.Scores, graphwork.Halves, graphwork.Window, graphwork.SliceSums,
	engine.Published, halo.Ghosts, halo.Buffers, halo.FedBack, engine.PairGradients}

// sketched is the rounding of an interval's arrays on a GPU in bytes.
const sketched = 8 << 10

// The heap memory of an interval: a constant and a term per layer. Measured with 3000 intervals:
// 14 KB each with 2 layers, and 55 KB each with 20.
const (
	intervalBytes      = 10 << 10
	intervalLayerBytes = 2 << 10
)

// GraphRank returns the memory of a graph rank with the given partition. Bounded asynchrony has
// two phases: at its end the asynchronous arrays are freed, and all ranks evaluate or continue
// synchronously. The larger phase counts. Without servers rank 0 hosts one.
//
// If Config.Scratch is set, values move to the scratch file until the rest fits in f.Limit.
func (f *Forecast) GraphRank(rank int, p partition.RankReport) Memory {
	if f.Predicts {
		return f.graphRank(rank, p, f.Config, model.Forward)
	}
	m := f.graphRank(rank, p, f.Config, engine.Memory(f.Config, f.Graph))
	if f.Config.Pipeline != "" {
		return m
	}
	if f.Config.Scratch != "" {
		return m.stream(f.Limit)
	}
	if f.Config.Asynchronous() {
		c := f.Config
		c.Mode, c.Refresh, c.Intervals = "pipe", refresh.NameAlways, c.IntervalsOf(f.Net, int(p.Vertices), p.Edges)
		stand := model.Forward
		if c.SwitchToSync > 0 {
			stand = engine.Memory(c, f.Graph)
		}
		if inStep := f.graphRank(rank, p, c, stand); inStep.Of(Array) > m.Of(Array) {
			return inStep
		}
	}
	return m
}

// graphRank returns the memory of one phase: its mode is that of c, and values are stored as
// stand says.
func (f *Forecast) graphRank(rank int, p partition.RankReport, c config.Config, stand model.Memory) Memory {
	m := new(Memory)
	if err := f.sketch(m, rank, p, c, stand); err != nil {
		m.add("more than can be counted", Array, size.Most)
	}
	n, w := p.Vertices, size.RoundUp(floats(int64(f.Net.NumWeights())), 64)
	async, began, count := c.Mode == "async", f.Config.Asynchronous(), c.IntervalsOf(f.Net, int(n), p.Edges)
	if c.Batching().Draws() && !f.Predicts {
		f.sampledSteps(m, rank, p, c)
	} else if batches := c.Batches(); batches > 0 && !f.Predicts {
		each, rows := f.batch, int(n)/batches
		if d := c.Samples(); d > 0 {
			rows = min(int(n), size.Product((int(p.Train)+engine.RefreshedRows(p, len(f.Net.GatherLayers())))/batches+1, 1+d))
			m.add("samples of a step", Heap, size.Product(int64(rows), int64(d+1), 16))
		}
		m.add("transpose of the features", Array, size.Product(p.FeatureNNZ, each.PerNonZero))
		f.ofBatches(m, c.IntervalsOf(f.Net, rows, 0))
		m.add(intervals, Heap, size.Product(int64(batches), int64(c.IntervalsOf(f.Net, rows, 0)), intervalBytes))
	}
	if stand&model.InChain > 0 { // a slot for each worker, and one more
		slot := size.Product((n+int64(count)-1)/int64(max(count, 1)), int64(4*model.New(f.Net, f.Sparse).SlotColumns(stand)))
		m.add("activations of running intervals", Array, size.Product(int64(cmp.Or(c.Threads, runtime.GOMAXPROCS(0))+1), slot))
	}
	if stand != model.Forward {
		m.add("transpose of the features", Array, size.Product(p.FeatureNNZ, f.foot.PerNonZero))
	}
	if own := f.foot.Fixed; async { // initial weights; each interval has weights and gradients
		m.add(weights, Array, w, size.Product(int64(count), own))
	} else { // intervals share weights and the sum of gradients
		m.add(weights, Array, w, w, w, size.Product(int64(count), max(own-w, 0)))
	}
	f.heap(m, rank, p, count, c.Asynchronous())
	m.add(targets, Mapped, floats(n, int64(f.Targets)))
	if f.Labels {
		m.add("converted targets", Heap, floats(n, int64(f.Net.Dims[f.Net.Layers()])))
	}
	if f.Links != nil {
		f.pairs(m, rank, p, *f.Links)
	}
	if f.Servers == 0 && began && rank == 0 {
		f.serve(m, f.Graph)
	}
	if (f.Servers == 0 || c.LocalEpochs > 0) && !async && (!began || f.Config.SwitchToSync > 0) {
		m.add(optimiser, Array, slices.Repeat([]int64{w}, f.Slots)...)
	}
	if c.LocalEpochs > 0 {
		m.add(averaged, Array, f.summed())
	}
	return *m
}

// sketch appends the files that a rank maps and the arrays of its engine, made on counting
// arenas. It fails if a size overflows.
func (f *Forecast) sketch(m *Memory, rank int, p partition.RankReport, c config.Config, stand model.Memory) (err error) {
	defer mapped.Catch(&err)
	rows, columns := size.Sum(1, p.Vertices, p.Ghosts, p.Edges, p.SendRows, p.FeatureNNZ), size.Sum(f.Net.Dims...)
	if size.Product(8, rows, size.Sum(f.foot.PerRow, int64(columns))) == size.Most { // columns of any matrix
		return errors.New("forecast: no number holds the size of an array")
	}
	p.CodedBits = f.codedBits(p)
	if f.Runs > 0 { // at most twice the rank's part, since a rank may have more vertices of one kind
		p.Runs = min(2*f.Runs/int64(f.Graph)+1, f.Runs)
	}
	files, kept, scratch := mapped.NewSketch(), mapped.NewSketch(), mapped.NewSketch()
	stages := max(c.Pipelining().Stages, 1)
	head := shard.Shard{Parts: f.Graph, Rank: rank / stages, Vertices: f.Vertices, Directed: f.Directed, Weighted: f.Weighted,
		EdgeDim: f.EdgeDim, FeatureDim: f.Net.Dims[0], Whole: f.Whole}
	if f.Half {
		head.Features.Half = []graph.BF16{}
	}
	ops, far := f.ops, cuda.NewSketch()
	lanes, err := cuda.Queues(far, cuda.Own, tensor.DeviceQueues)
	if err != nil {
		return err
	}
	var tasks tensor.Backend = tensor.CPU{}
	switch {
	case c.GPUsGather():
		ops = lanes[0]
	case c.GPUsApply():
		tasks = tensor.NewDevice(lanes)
	}
	engine.Sketch(c, f.Net, stand, f.Codecs, shard.Sketch(head, p, f.Sparse, files), p, ops, tasks, kept, scratch,
		engine.SketchedStage{Number: rank % stages, Edges: f.Edges})
	m.shares(Mapped, files)
	m.shares(Array, kept)
	f.edges(m, p, c)
	m.add(onDevice, Device, far.Most())
	if c.Tensor == config.TensorCUDA {
		f.outsideSketch(m, p, c, lanes[0].(*cuda.Ops).Workspace())
	}
	passing := int64(0) // values of ÂX that are read in order
	for _, s := range scratch.Shares() {
		if s.Purpose == model.Streamed {
			passing = s.Bytes
		}
	}
	m.add("making ÂX, fetching features", Scratch, scratch.Used()-passing)
	m.add(model.Streamed, Scratch, passing)
	f.findGhosts(m, p)
	return nil
}

// outsideSketch appends GPU memory that is not in a sketch. workspace is the largest one of a kernel in
// the sketch.
func (f *Forecast) outsideSketch(m *Memory, p partition.RankReport, c config.Config, workspace int64) {
	var list []int64
	w, count := floats(int64(f.Net.NumWeights())), int64(c.IntervalsOf(f.Net, int(p.Vertices), p.Edges))
	if c.GPUsGather() { // sum of gradients, and the optimiser's weights and state
		list = slices.Repeat([]int64{w}, 3+f.Slots)
		if c.Intervals == 0 {
			count = 1
		}
		for _, e := range f.Exchanges() { // gradients still in transit when the run ends
			if e.Backward && c.Ghosts().AwaitsLast() {
				list = append(list, floats(p.Vertices, int64(e.Width)))
			}
		}
	}
	if f.Predicts {
		list = append(list, floats(p.Vertices), floats(p.Vertices, f.embedded()))
	}
	if f.Sparse && count > 1 {
		list = append(list, size.Product(count-1, f.intervalOnGPU(c, w)))
		if c.GPUsApply() {
			list = append(list, size.Product(min(count, tensor.DeviceQueues)-1, size.Sum(w, workspace)))
		}
	}
	m.add(besideSketch, Device, list...)
}

// intervalOnGPU returns the memory of an interval without a sketch, including the gather plan for
// the transpose of its features.
func (f *Forecast) intervalOnGPU(c config.Config, weights int64) int64 {
	own := f.foot.Fixed
	if c.Mode != "async" {
		own = max(own-weights, 0)
	}
	return size.Sum(own, floats(int64(f.Net.Dims[0]), 1), sketched)
}

// embedded returns the width of embeddings that are stored separately.
func (f *Forecast) embedded() int64 {
	if f.Net.Layers() > 1 {
		return 0
	}
	return int64(f.Net.Dims[0])
}

// Activations returns the bytes of activations and their gradients for the given number of
// vertices, without and with --recompute. Both are 0 in bounded asynchrony, which stores
// all of them.
func (f *Forecast) Activations(vertices int64) (kept, again int64) {
	if f.Config.Mode == "async" {
		return 0, 0
	}
	net := model.New(f.Net, f.Sparse)
	return floats(vertices, int64(net.Columns(model.InStep))), floats(vertices, int64(net.Columns(model.Recompute)))
}

// heap appends estimates of a graph rank's heap. They are not exact: transfers overlap by chance,
// and the size of encoded rows depends on values.
func (f *Forecast) heap(m *Memory, rank int, p partition.RankReport, count int, async bool) {
	w := floats(int64(f.Net.NumWeights()))
	m.add(intervals, Heap, size.Product(int64(count), intervalBytes+intervalLayerBytes*int64(f.Net.Layers())))
	m.add("best weights", Heap, w)
	f.start(m, w)
	if f.Servers > 0 || async {
		m.add("weights in messages", Heap, size.Product(4, f.summed()))
	}
	switch {
	case async:
		m.add("rows in messages", Heap, f.messages(p))
	case f.Graph > 1:
		m.add("encoded rows", Heap, f.encoded(p))
		m.add("rows of ghosts for checkpoints", Heap, f.portableState(rank, p))
		m.add(predict.Memory, Heap, f.compressedRows(p))
	}
}

// compressedRows returns the bytes of own rows that --predict history=FORMAT compresses, without compression:
// an upper bound.
func (f *Forecast) compressedRows(p partition.RankReport) (bytes int64) {
	if c := f.Config; cmp.Or(c.PredictHistory, predict.Uncompressed) != predict.Uncompressed {
		widths := f.PredictedWidths()
		for _, width := range widths {
			rows := predict.SampledRows(c.PredictRows, slices.Max(widths), int(p.Vertices))
			bytes = size.Sum(bytes, floats(int64(rows), int64(width), int64(predict.Windows(c.Ghosts().Timing()))))
		}
	}
	return bytes
}

// portableState returns the bytes of the parts' portable state during a checkpoint: rows that later
// epochs use. Each rank stores its own state twice. Rank 0 gathers the states of all parts,
// assumed to be of equal size.
func (f *Forecast) portableState(rank int, p partition.RankReport) (bytes int64) {
	policy, copies := f.Config.Ghosts(), int64(2)
	if rank == 0 {
		copies += int64(f.Graph)
	}
	for _, e := range f.Exchanges() {
		in, out := p.Ghosts, p.SendRows
		if e.Backward {
			in, out = out, in
		}
		rows := int64(0)
		if policy.NeedsStoredRows() {
			rows = size.Product(2, in) // rows in use, and rows received for later or sent last
		}
		if strings.HasSuffix(f.Codecs[0].Name(), "+ef") {
			rows = size.Sum(rows, out)
		}
		if c := f.Config; c.TrainsPredictor() && !e.Backward { // own rows and the cells of a predictor
			rows = size.Sum(rows, p.Vertices)
			bytes = size.Sum(bytes, floats(copies, predict.CellNumbers(c.PredictWindow,
				predict.SampledRows(c.PredictRows, e.Width, int(p.Vertices)), p.Vertices+p.Ghosts, e.Width)))
			if c.PredictHold {
				rows = size.Sum(rows, p.Ghosts)
			}
		}
		bytes = size.Sum(bytes, floats(copies, rows, int64(e.Width)))
	}
	return bytes
}

// messages returns the bytes of sent and received rows in bounded asynchrony, doubled for garbage
// that is not yet collected.
func (f *Forecast) messages(p partition.RankReport) (bytes int64) {
	for _, g := range f.foot.Gathers {
		bytes = size.Sum(bytes, floats(4, p.Ghosts+p.SendRows, int64(g.Width)))
	}
	return bytes
}

// encoded returns the bytes of encoded rows that are sent, and received but not decoded: of one
// exchange at a time, or of every exchange if transfers outlive their epoch.
func (f *Forecast) encoded(p partition.RankReport) (bytes int64) {
	rows, most := max(p.SendRows, p.Ghosts), int64(0)
	for _, c := range f.Codecs {
		if framed(c) {
			out, _, _ := payload(c, rows, f.maxWidth())
			most = max(most, size.Product(2, out))
		}
	}
	policy := f.Config.Ghosts()
	if policy.Frames() && !framed(f.Codecs[0]) { // unencoded rows are framed too
		most = floats(2, rows, f.maxWidth())
	}
	if framed(f.Codecs[0]) {
		for _, e := range f.Exchanges() {
			out, _, _ := payload(f.Codecs[0], rows, int64(e.Width))
			bytes = size.Sum(bytes, size.Product(policy.CopiesInTransit(), out))
		}
	}
	return size.Sum(bytes, most)
}

// start appends the memory of a run's initial state, for weights of n bytes.
func (f *Forecast) start(m *Memory, n int64) {
	if f.Config.Resume != "" {
		m.add("weights and state to go on from", Heap, slices.Repeat([]int64{n}, 2+f.Slots)...)
	}
	if f.Config.Init != "" {
		m.add("weights to start from", Heap, n)
	}
}
