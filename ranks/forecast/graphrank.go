package forecast

import (
	"errors"
	"slices"
	"strings"

	"siafu/cuda"
	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/halo"
	"siafu/halo/refresh"
	"siafu/internal/mapped"
	"siafu/internal/size"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/engine"
	"siafu/ranks/graphwork"
	"siafu/ranks/tensor"
)

// Program is the memory of a process beside its data: the program's own pages,
// Go's runtime and small things on its heap, and Open MPI. Runs on small graphs
// showed 32 to 43 MB of it.
const Program int64 = 48 << 20

// Names of terms, beside those that the packages give which make the arrays.
const (
	Kept      = engine.CachedInput
	weights   = "weights and their gradients"
	optimiser = "optimiser state"
	averaged  = "own weights and state, for others"
	intervals = "tasks of intervals"

	onDevice     = "arrays, workspaces and plans of gathers on the GPU"
	besideSketch = "weights and gradients on the GPU"

	intervalsOfBatches = "gradients of mini-batches"
)

// epochs are terms that nobody touches before the first epoch.
var epochs = []string{engine.Activations, graphwork.Scores, graphwork.Halves, engine.Published, halo.Ghosts, halo.Buffers, halo.FedBack, engine.PairGradients}

// sketched is what the arrays of an interval are rounded up by on a GPU.
const sketched = 8 << 10

// An interval takes about so much of the heap for itself and for each of its
// layers: a run of 3000 intervals, of 2 layers and of 20, took 14 and 55 KB for
// each.
const (
	intervalBytes      = 10 << 10
	intervalLayerBytes = 2 << 10
)

// GraphRank returns the memory of a graph rank with the given partition. In bounded
// asynchrony without servers rank 0 hosts one, and at the end, when the arrays of
// that have gone, all ranks evaluate synchronously or continue so: whichever takes more.
func (f *Forecast) GraphRank(rank int, p partition.RankReport) Memory {
	if f.Predicts {
		return f.graphRank(rank, p, f.Config, model.Forward)
	}
	m := f.graphRank(rank, p, f.Config, engine.Memory(f.Config))
	if f.Config.Asynchronous() {
		c := f.Config
		c.Mode, c.Refresh, c.Intervals = "pipe", refresh.NameAlways, c.IntervalsOf(f.Net, int(p.Vertices), p.Edges)
		stand := model.Forward
		if c.SwitchToSync > 0 {
			stand = engine.Memory(c)
		}
		if inStep := f.graphRank(rank, p, c, stand); inStep.Of(Array) > m.Of(Array) {
			return inStep
		}
	}
	return m
}

// graphRank is that of a rank in the mode that c says, now or at the end, whose
// values stand as stand says.
func (f *Forecast) graphRank(rank int, p partition.RankReport, c config.Config, stand model.Memory) Memory {
	m := new(Memory)
	if err := f.sketch(m, rank, p, c, stand); err != nil {
		m.add("more than can be counted", Array, size.Most)
	}
	n, w := p.Vertices, size.RoundUp(floats(int64(f.Net.NumWeights())), 64)
	async, began, count := c.Mode == "async", f.Config.Asynchronous(), c.IntervalsOf(f.Net, int(n), p.Edges)
	if c.Batching().Draws() && !f.Predicts {
		f.drawn(m, p, c)
	} else if batches := c.Batches(); batches > 0 && !f.Predicts {
		each, rows := f.batch, int(n)/batches
		if d := c.Samples(); d > 0 {
			rows = min(int(n), size.Product(int(p.Train)/batches+1, 1+d))
			m.add("samples of a step", Heap, size.Product(int64(rows), int64(d+1), 16))
		}
		m.add("transpose of the features", Array, size.Product(p.FeatureNNZ, each.PerNonZero))
		f.ofBatches(m, c.IntervalsOf(f.Net, rows, 0))
		m.add(intervals, Heap, size.Product(int64(batches), int64(c.IntervalsOf(f.Net, rows, 0)), intervalBytes))
	}
	if stand != model.Forward {
		m.add("transpose of the features", Array, size.Product(p.FeatureNNZ, f.foot.PerNonZero))
	}
	if own := f.foot.Fixed; async { // the first weights, and of each interval weights and their gradients
		m.add(weights, Array, w, size.Product(int64(count), own))
	} else { // intervals share weights, and there is the sum of their gradients
		m.add(weights, Array, w, w, w, size.Product(int64(count), max(own-w, 0)))
	}
	f.heap(m, rank, p, count, c.Asynchronous())
	m.add("shard: targets", Mapped, floats(n, int64(f.Targets)))
	if f.Labels {
		m.add("labels as targets", Heap, floats(n, int64(f.Net.Dims[f.Net.Layers()])))
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

// drawn appends what steps that are drawn take beside their values: intervals, and on the
// heap rows with what is known of them, and edges as they are drawn and as they are
// gathered along.
func (f *Forecast) drawn(m *Memory, p partition.RankReport, c config.Config) {
	b, most, count := c.Batching(), engine.MaxSampledRows(c, f.Vertices, p), 0
	for _, n := range most {
		count += c.IntervalsOf(f.Net, n, 0)
	}
	var rows, edges, largest int64
	for _, block := range engine.SampledEdges(c, p, most) {
		rows, edges, largest = max(rows, block.Rows), size.Sum(edges, block.Edges), max(largest, block.Edges)
	}
	if b.Kind == config.Cluster {
		largest = 0                                                                                       // nobody is asked for them
		m.add("cutting clusters", Scratch, size.Product(24, p.Edges-p.Cut), size.Product(64, p.Vertices)) // edges, those of smaller graphs, and gains
	}
	m.add("samples of a step", Heap, size.Product(rows, 64), size.Product(edges, 16))
	f.brought(m, rows, edges, largest)
	f.ofBatches(m, count)
	m.add(intervals, Heap, size.Product(int64(count), intervalBytes))
}

// ofBatches appends what so many intervals of mini-batches have by themselves: not the weights,
// which are those of the trainer.
func (f *Forecast) ofBatches(m *Memory, count int) {
	weights := size.RoundUp(floats(int64(f.Net.NumWeights())), 64)
	m.add(intervalsOfBatches, Array, size.Product(int64(count), max(f.batch.Fixed-weights, 0)))
}

// brought appends the weights and features that the edges of a step bring along: as layers read
// them, with means for the rows, and as samples of answered of them travel, half of them once
// more. Lists that grow have a quarter to spare, and the heap doubles before what steps leave
// behind is collected.
func (f *Forecast) brought(m *Memory, rows, edges, answered int64) {
	each := int64(f.Net.Design.EdgeDim)
	kept := size.Sum(floats(edges, each), floats(rows, each))
	if f.Weighted && f.Net.Weighs() {
		each, kept = each+1, size.Sum(kept, floats(edges))
	}
	m.add("what edges of a step bring along", Heap, size.Product(2, kept+kept/4), size.Product(3, floats(answered, each)))
}

// sketch appends the files that a rank maps and the arrays that its engine makes,
// which are made on arenas that only count. It fails where they cannot be counted.
func (f *Forecast) sketch(m *Memory, rank int, p partition.RankReport, c config.Config, stand model.Memory) (err error) {
	defer mapped.Catch(&err)
	rows, columns := size.Sum(1, p.Vertices, p.Ghosts, p.Edges, p.SendRows, p.FeatureNNZ), size.Sum(f.Net.Dims...)
	if size.Product(8, rows, size.Sum(f.foot.PerRow, int64(columns))) == size.Most { // the columns of any matrix
		return errors.New("forecast: no number holds the size of an array")
	}
	files, kept, scratch := mapped.NewSketch(), mapped.NewSketch(), mapped.NewSketch()
	head := shard.Shard{Parts: f.Graph, Rank: rank, Vertices: f.Vertices, Directed: f.Directed, Weighted: f.Weighted, EdgeDim: f.EdgeDim, FeatureDim: f.Net.Dims[0]}
	ops, far := f.ops, cuda.NewSketch()
	lanes, err := cuda.Lanes(far, cuda.Own, tensor.Lanes)
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
	engine.Sketch(c, f.Net, stand, f.Codecs, shard.Sketch(head, p, f.Sparse, files), p, ops, tasks, kept, scratch)
	m.shares(Mapped, files)
	m.shares(Array, kept)
	m.add(onDevice, Device, far.Most())
	if c.Tensor == config.TensorCUDA {
		f.beside(m, p, c, lanes[0].(*cuda.Ops).Workspace())
	}
	m.add("making ÂX, fetching features", Scratch, scratch.Used())
	return nil
}

// beside appends what is on a GPU beside a sketch there, on which a kernel had so large a
// workspace.
func (f *Forecast) beside(m *Memory, p partition.RankReport, c config.Config, workspace int64) {
	var list []int64
	w, count := floats(int64(f.Net.NumWeights())), int64(c.IntervalsOf(f.Net, int(p.Vertices), p.Edges))
	if c.GPUsGather() { // the sum of gradients, and the optimiser, which has weights of its own
		list = slices.Repeat([]int64{w}, 3+f.Slots)
		if c.Intervals == 0 {
			count = 1
		}
		for _, e := range f.Exchanges() { // what comes for nobody at the end of the run
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
			list = append(list, size.Product(min(count, tensor.Lanes)-1, size.Sum(w, workspace)))
		}
	}
	m.add(besideSketch, Device, list...)
}

// intervalOnGPU is what an interval that is not sketched has by itself, with what a
// gather of the transpose of its features is planned by.
func (f *Forecast) intervalOnGPU(c config.Config, weights int64) int64 {
	own := f.foot.Fixed
	if c.Mode != "async" {
		own = max(own-weights, 0)
	}
	return size.Sum(own, floats(int64(f.Net.Dims[0]), 1), sketched)
}

// embedded returns the width of embeddings that are made for themselves.
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

// heap is what a graph rank takes of Go's heap: estimates, since what is under way
// at a time is left to chance, and codecs to contents.
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
		m.add("rows of ghosts for checkpoints", Heap, f.luggage(rank, p))
	}
}

// The parts' portable state during a checkpoint: rows that later epochs use. Each rank has it
// twice, and rank 0 gathers all parts' states, assumed to be of equal size.
func (f *Forecast) luggage(rank int, p partition.RankReport) (bytes int64) {
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
			rows = size.Product(2, in) // that stand, and that have come for later or have been sent last
		}
		if strings.HasSuffix(f.Codecs[0].Name(), "+ef") {
			rows = size.Sum(rows, out)
		}
		bytes = size.Sum(bytes, floats(copies, rows, int64(e.Width)))
	}
	return bytes
}

// messages is rows on their way and arrived, in bounded asynchrony, twice over:
// the collector lets the heap double.
func (f *Forecast) messages(p partition.RankReport) (bytes int64) {
	for _, g := range f.foot.Gathers {
		bytes = size.Sum(bytes, floats(4, p.Ghosts+p.SendRows, int64(g.Width)))
	}
	return bytes
}

// encoded is what leaves through a codec, and what has arrived and is not decoded:
// of one exchange at a time and, where transfers outlive their epoch, of each.
func (f *Forecast) encoded(p partition.RankReport) (bytes int64) {
	rows, most := max(p.SendRows, p.Ghosts), int64(0)
	for _, c := range f.Codecs {
		if framed(c) {
			out, _, _ := payload(c, rows, f.maxWidth())
			most = max(most, size.Product(2, out))
		}
	}
	policy := f.Config.Ghosts()
	if policy.Frames() && !framed(f.Codecs[0]) { // rows travel in frames all the same
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

// start is what a run is given to begin with, for weights of n bytes.
func (f *Forecast) start(m *Memory, n int64) {
	if f.Config.Resume != "" {
		m.add("weights and state to go on from", Heap, slices.Repeat([]int64{n}, 2+f.Slots)...)
	}
	if f.Config.Init != "" {
		m.add("weights to start from", Heap, n)
	}
}
