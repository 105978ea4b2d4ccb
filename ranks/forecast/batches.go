package forecast

import (
	"siafu/graph/partition"
	"siafu/graph/shard"
	"siafu/internal/size"
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/engine"
	"siafu/ranks/schedule/pipeline"
)

// sampledSteps appends the memory of sampled steps in addition to their values: intervals, and on the
// heap their rows, sampled edges and edges in gathering order.
func (f *Forecast) sampledSteps(m *Memory, rank int, p partition.RankReport, c config.Config) {
	b, most, count := c.Batching(), engine.MaxSampledRows(c, f.Vertices, p), 0
	for _, n := range most {
		count += c.IntervalsOf(f.Net, n, 0)
	}
	var rows, edges, largest int64
	for _, block := range engine.SampledEdges(c, p, most) {
		rows, edges, largest = max(rows, block.Rows), size.Sum(edges, block.Edges), max(largest, block.Edges)
	}
	if b.Kind == config.Cluster || b.Kind == config.Saint {
		largest = 0 // no rows of other ranks are requested
	}
	if b.Kind == config.Approximate { // before edges from other vertices are removed
		m.add("sampled vertices of other ranks", Scratch, size.Product(64, int64(f.Vertices)), size.Product(16, edges))
	}
	if b.Kind == config.Cluster {
		m.add("cutting clusters", Scratch, size.Product(24, p.Edges-p.Cut), size.Product(64, p.Vertices)) // edges, coarse graphs and gains
	}
	m.add("samples of a step", Heap, size.Product(rows, 64), size.Product(edges, 16))
	if c.Pipeline != "" {
		f.stage(m, rank, c, rows)
	}
	f.edgeValues(m, rows, edges, largest)
	if c.PipelineSettings().Redundancy >= pipeline.EagerForward { // intervals of the next stage's layers
		count *= 2
	}
	f.ofBatches(m, count)
	m.add(intervals, Heap, size.Product(int64(count), intervalBytes))
}

// stage appends the heap of a stage of a pipeline: sums of gradients, and messages of the given number of
// rows, all of an update's with redundancy.
func (f *Forecast) stage(m *Memory, rank int, c config.Config, rows int64) {
	settings, net := c.PipelineSettings(), model.New(c.BatchNetwork(f.Net), false)
	sections := f.Stages()
	at := sections[rank%len(sections)]
	copies, sums := int64(2), int64(1)
	if settings.Redundancy != pipeline.Off {
		copies += int64(settings.Microbatches)
	}
	if settings.Redundancy >= pipeline.EagerForward {
		sums++
	}
	m.add(weights, Heap, size.Product(sums, floats(int64(f.Net.NumWeights()))))
	m.add("messages between stages", Heap,
		size.Product(copies, floats(rows, int64(net.CrossingColumns(at.First)+net.CrossingColumns(at.End)))))
}

// Stages returns the layers of each stage of a pipeline, nil without pipelines.
func (f *Forecast) Stages() []model.Section {
	if f.Config.Pipeline == "" {
		return nil
	}
	return engine.Stages(f.Config, model.New(f.Config.BatchNetwork(f.Net), false), shard.Counts{Vertices: f.Vertices, Edges: f.Edges})
}

// ofBatches appends the memory of count intervals of mini-batches. Weights are excluded, because
// they are the trainer's.
func (f *Forecast) ofBatches(m *Memory, count int) {
	weights := size.RoundUp(floats(int64(f.Net.NumWeights())), 64)
	m.add(intervalsOfBatches, Array, size.Product(int64(count), max(f.batch.Fixed-weights, 0)))
}

// edgeValues appends the weights and features of a step's edges. Layers read them with the rows'
// means. Samples for other ranks are sent with them, half of them twice. Lists have a quarter of
// spare capacity. The factor 2 is the heap's growth before garbage of earlier steps is collected.
func (f *Forecast) edgeValues(m *Memory, rows, edges, answered int64) {
	each := int64(f.Net.Design.EdgeDim)
	kept := size.Sum(floats(edges, each), floats(rows, each))
	if f.Weighted && f.Net.Weighs() || engine.NormalisesEdges(f.Config) {
		each, kept = each+1, size.Sum(kept, floats(edges))
	}
	m.add("what edges of a step bring along", Heap, size.Product(2, kept+kept/4), size.Product(3, floats(answered, each)))
}
