package plan

import (
	"math"
	"runtime"
	"slices"
	"time"

	"siafu/graph"
	"siafu/halo/codec"
	"siafu/halo/predict"
	"siafu/internal/host"
	"siafu/internal/mapped"
	"siafu/internal/size"
	"siafu/kernels"
	"siafu/kernels/model"
	"siafu/ranks/forecast"
)

// The amount of measured work, and the time that each measurement is repeated.
const (
	sampleRows     = 1 << 15
	sampleEdges    = 1 << 21
	sampleInOrder  = 1 << 23 // edges, if the sample is in a vertex order
	sampleOfBlocks = 1 << 25 // edges, if the gather is blocked
	sampleBytes    = 1 << 30 // size of the rows that a gather reads
	sampleTime     = 20 * time.Millisecond
	codedRows      = 2048
)

// calibration measures this host with the threads of all ranks that share it.
type calibration struct {
	ds     *graph.Dataset
	team   *kernels.Team
	arena  *mapped.Arena
	memory int64 // available memory of this host in bytes
	s      *sample
	// ordered: the sample's vertices are in the order of a shard.
	ordered bool

	known  map[string]forecast.Rates // by orders of products
	coding map[string]codec.Cost
	copies float64 // bytes/s, 0 before the measurement
	disk   float64 // bytes/s, 0 if no values are in files
}

// peakMemory returns the largest memory of any measurement of a plan, and completes the plan's
// description of the network.
func (c *calibration) peakMemory(p *Plan) (most int64) {
	for _, one := range p.Candidates {
		f := one.Codecs[0].forecast
		p.network(f)
		fixed, row := rehearsalMemory(f)
		width := int64(widest(f.Gathers()))
		gathered := int64(0)
		if width > 0 {
			_, rows := c.s.gather(int(width))
			// forward and backward operands; columns, original and reordered
			gathered = size.Sum(size.Product(4*4, width, int64(rows+c.s.Rows())), size.Product(2*4, int64(len(c.s.Cols))))
		}
		coded := size.Product(4, width, codedRows, 1+2*int64(c.team.Workers())) // rows, and for each worker a block and its rows
		most = max(most, size.Sum(fixed, row), gathered, coded)
	}
	return most
}

// rehearsalMemory returns the memory of a network's rehearsal: a constant, and the bytes per row.
func rehearsalMemory(f *forecast.Forecast) (fixed, row int64) {
	foot := f.Net.Footprint(f.Sparse, model.Separate)
	columns := int64(slices.Max(f.Net.Dims)) // ones, which fill a matrix
	if f.Net.CacheInput {
		columns = size.Sum(columns, size.Product(int64(f.Net.Dims[0]), int64(f.Net.Powers().Cached())))
	}
	return foot.Fixed, size.Sum(foot.PerRow, foot.PerNonZero, size.Product(4, columns))
}

func (q *request) calibration(ds *graph.Dataset) (*calibration, error) {
	threads := runtime.NumCPU()
	if q.Config.Threads > 0 {
		threads = min(threads, q.Config.Threads*min(q.link.RanksPerHost, q.view.Ranks))
	}
	c := &calibration{
		ds: ds, team: kernels.NewTeam(threads), arena: mapped.NewArena(), memory: host.AvailableMemory() / 2, disk: q.disk,
		known: map[string]forecast.Rates{}, coding: map[string]codec.Cost{},
	}
	in, ordered, done := q.inOrder(ds)
	c.s, c.ordered = newSample(in, q.Config.Hidden, ordered), ordered
	c.s.spread = int(q.Scale)
	done()
	if err := c.check(); err != nil {
		c.close()
		return nil, err
	}
	if err := c.team.Use(q.Config.KernelVariant()); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *calibration) close() {
	c.team.Close()
	c.arena.Free()
}

// quickest returns the minimum seconds of a few calls.
func quickest(call func()) float64 {
	call() // first touch of the memory
	best, begin := time.Hour, time.Now()
	for n := 0; n < 2 || time.Since(begin) < sampleTime; n++ {
		start := time.Now()
		call()
		best = min(best, time.Since(start))
	}
	return best.Seconds()
}

// rounds is the number of repetitions of all measurements. Other load on the machine rarely lasts
// for all of them.
const rounds = 3

// rates measures everything but codecs for a network, and returns the minimum of each
// measurement.
func (c *calibration) rates(f *forecast.Forecast) forecast.Rates {
	r := forecast.Rates{Row: math.Inf(1), Edge: map[int]float64{}, Backward: map[int]float64{}}
	s := c.s
	for range rounds {
		r.Row = min(r.Row, c.row(f))
		for l, g := range f.Gathers() {
			if g.Width == 0 {
				continue
			}
			there, back := c.layer(s, g, f)
			if old, ok := r.Edge[l]; ok {
				there, back = min(there, old), min(back, r.Backward[l])
			}
			r.Edge[l], r.Backward[l] = there, back
		}
	}
	widths := f.PredictedWidths()
	for _, width := range widths {
		own := predict.SampledRows(f.Config.PredictRows, slices.Max(widths), max(int(c.ds.Meta.Vertices)/f.Graph, 1))
		if r.Predict == nil {
			r.Predict = map[int]predict.Cost{}
		}
		r.Predict[width] = predict.Measure(f.Config.Predict, width, own, c.team, quickest)
	}
	return r
}

// layer returns the seconds per edge of one layer's gather, forward and backward.
func (c *calibration) layer(s *sample, g model.Gathering, f *forecast.Forecast) (there, back float64) {
	if g.Heads > 0 {
		return c.attention(s, g, f.Net)
	}
	there = c.gather(s, g.Width, f.Config.Gather == "bf16")
	return there, there
}

// row returns the seconds of an epoch's tensor work per vertex, including the loss. It runs the
// network on the first vertices of the dataset.
func (c *calibration) row(f *forecast.Forecast) float64 {
	a, net := mapped.NewArena(), f.Net
	defer a.Free()
	fixed, each := rehearsalMemory(f)
	n := int(min(c.ds.Meta.Vertices, sampleRows, max((c.memory-fixed)/each, 1)))
	return quickest(forecast.Rehearsal(net, c.ds.Features, c.ds.Labels, c.ds.Split, n, c.team, a)) / float64(n)
}

// gather returns the seconds per edge of a gather along the sample's edges.
func (c *calibration) gather(s *sample, width int, half bool) float64 {
	a := mapped.NewArena()
	defer a.Free()
	g, rows := s.gather(width)
	x, dst := kernels.NewMat(c.team, a, rows, width), kernels.NewMat(c.team, a, g.Rows(), width)
	for i := range x.Host() {
		x.Host()[i] = 1
	}
	scale, e := kernels.NewVector[float32](c.team, a, max(rows, g.Rows())), g.Edges()
	e.RowScale = scale
	if !half {
		e.ColScale = scale
		return quickest(func() { c.team.SpMM(dst, e, x, false) }) / s.edges()
	}
	halves := kernels.NewHalf(c.team, a, rows, width, kernels.HalfSlack)
	return quickest(func() {
		c.team.Narrow(halves, x, scale)
		c.team.SpMM(dst, e, halves, false)
	}) / s.edges()
}

// attention returns the seconds per edge of an attention layer, forward and backward.
func (c *calibration) attention(s *sample, l model.Gathering, net model.Spec) (there, back float64) {
	a := mapped.NewArena()
	defer a.Free()
	at := kernels.Attention{Heads: l.Heads, Width: l.Columns / l.Heads, Slope: 0.2, Dynamic: l.Dynamic}
	g, rows := s.gather(l.Width)
	n, e := g.Rows(), g.Edges()
	zeros := func(rows, cols int) kernels.Mat { return kernels.NewMat(c.team, a, rows, cols) }
	if net.AttentionDropout > 0 {
		at.Drop = &kernels.Dropout{P: net.AttentionDropout, Seed: 1, Epoch: 1, IDs: kernels.NewVector[uint32](c.team, a, max(rows, n))}
	}
	x, dst, grads := zeros(rows, l.Width), zeros(n, l.Width), zeros(max(rows, n), l.Columns)
	stats, heads, r, dr := zeros(n, 2*l.Heads), zeros(max(rows, n), l.Heads),
		zeros(max(rows, n), at.ScoreWidth()), zeros(n, at.ScoreWidth())
	if at.Dynamic {
		at.Vector = zeros(at.Heads, at.Width)
	}
	along := zeros(n, at.AlongWidth())
	there = quickest(func() {
		c.team.AttentionGather(at, dst.Reshape(n, l.Columns), kernels.Mat{}, stats, e, kernels.Emitted{X: x}, r, false)
		c.team.AttentionFinish(at, dst.Reshape(n, l.Columns), kernels.Mat{}, heads, stats)
	})
	c.team.Clear(heads)
	own := kernels.Attended{R: r, LSE: heads, Grad: grads, Dots: heads}
	back = quickest(func() {
		c.team.AttentionGradSrc(at, dst, e, 0, rows, x.Part(0, n), own)
		c.team.AttentionGradDst(at, dr, along, e, kernels.Emitted{X: x}, own, false)
	})
	return there / s.edges(), back / s.edges()
}

// codec returns the cost of a codec on rows of a width. Half of the numbers are zeros, as after
// ReLU.
func (c *calibration) codec(rows codec.Codec, width int) codec.Cost {
	x := make([]float32, codedRows*width)
	for i := range x {
		if z := uint64(i) * 0x9e3779b97f4a7c15; z>>63 == 1 {
			x[i] = float32(z>>32&0xffff) / (1 << 14)
		}
	}
	return codec.Measure(c.team, rows, codec.Rows{X: x, Cols: width, Len: codedRows}, false)
}

// copies returns the bytes/s that one goroutine copies.
func copies() float64 {
	const size = 32 << 20
	a := mapped.NewArena()
	defer a.Free()
	from, to := mapped.Make[byte](a, size), mapped.Make[byte](a, size)
	from[0] = 1
	return size / quickest(func() { copy(to, from) })
}
