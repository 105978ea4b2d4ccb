package forecast

import (
	"math"
	"slices"
	"time"

	"siafu/graph"
	"siafu/halo/codec"
	"siafu/halo/predict"
	"siafu/internal/mapped"
	"siafu/internal/size"
	"siafu/kernels"
	"siafu/kernels/model"
)

// Host measures the costs of an epoch's work on this host. A plan and the automatic choice of computed
// ghost rows measure with it.
type Host struct {
	Team     *kernels.Team
	Features graph.Features // of the first vertices of a dataset or shard
	Labels   []int32
	Split    []uint8
	Sample   *Sample
	Rows     int   // of tensor work at most, at most those of Labels
	Memory   int64 // bytes for tensor work
	Busy     bool  // other ranks of the host measure at the same time, as they compute in an epoch
}

// The number of times that all measurements are repeated. Other load on the machine rarely lasts for
// all of them.
const rounds = 3

// codedRows is the number of rows on which codecs are measured.
const codedRows = 2048

// sampleTime is the least time of a measurement.
const sampleTime = 20 * time.Millisecond

// seconds measures a call: the minimum of some calls, or their mean if the host is busy.
func (h *Host) seconds(call func()) float64 {
	call() // first touch of the memory
	best, calls, began := time.Hour, 0, time.Now()
	for ; calls < 2 || time.Since(began) < sampleTime; calls++ {
		start := time.Now()
		call()
		best = min(best, time.Since(start))
	}
	if h.Busy {
		return time.Since(began).Seconds() / float64(calls)
	}
	return best.Seconds()
}

// Rates measures everything but codecs and disks for a network, and returns the minimum of each
// measurement.
func (h *Host) Rates(f *Forecast) Rates {
	r := Rates{Row: math.Inf(1), Edge: map[int]float64{}, Backward: map[int]float64{}}
	for range rounds {
		r.Row = min(r.Row, h.row(f))
		for l, g := range f.foot.Gathers {
			if g.Width == 0 {
				continue
			}
			there, back := h.layer(g, f)
			if old, ok := r.Edge[l]; ok {
				there, back = min(there, old), min(back, r.Backward[l])
			}
			r.Edge[l], r.Backward[l] = there, back
		}
	}
	widths := f.PredictedWidths()
	for _, width := range widths {
		own := predict.SampledRows(f.Config.PredictRows, slices.Max(widths), max(int(f.Vertices)/f.Graph, 1))
		if r.Predict == nil {
			r.Predict = map[int]predict.Cost{}
		}
		r.Predict[width] = predict.Measure(f.Config.Predict, width, own, h.Team, h.seconds)
	}
	return r
}

// Need returns the largest memory of any measurement for a network.
func (h *Host) Need(f *Forecast) int64 {
	fixed, row := rehearsalMemory(f)
	width, gathered := f.maxWidth(), int64(0)
	if width > 0 {
		_, rows := h.Sample.gather(int(width))
		// forward and backward operands; columns, original and reordered
		gathered = size.Sum(size.Product(4*4, width, int64(rows+h.Sample.Rows())), size.Product(2*4, int64(len(h.Sample.Cols))))
	}
	coded := size.Product(4, width, codedRows, 1+2*int64(h.Team.Workers())) // rows, and for each worker a block and its rows
	return max(size.Sum(fixed, row), gathered, coded)
}

// rehearsalMemory returns the memory of a network's rehearsal: a constant, and the bytes per row.
func rehearsalMemory(f *Forecast) (fixed, row int64) {
	foot := f.Net.Footprint(f.Sparse, model.Separate)
	columns := int64(slices.Max(f.Net.Dims)) // ones, which fill a matrix
	if f.Net.CacheInput {
		columns = size.Sum(columns, size.Product(int64(f.Net.Dims[0]), int64(f.Net.Powers().Cached())))
	}
	return foot.Fixed, size.Sum(foot.PerRow, foot.PerNonZero, size.Product(4, columns))
}

// layer returns the seconds per edge of one layer's gather, forward and backward.
func (h *Host) layer(g model.Gathering, f *Forecast) (there, back float64) {
	if g.Heads > 0 {
		return h.attention(g, f.Net)
	}
	there = h.gather(g.Width, f.Config.Gather == "bf16")
	return there, there
}

// row returns the seconds of an epoch's tensor work per vertex, including the loss.
func (h *Host) row(f *Forecast) float64 {
	a := mapped.NewArena()
	defer a.Free()
	fixed, each := rehearsalMemory(f)
	n := int(min(int64(h.Rows), max((h.Memory-fixed)/each, 1)))
	h.Team.RoundOperands(f.Config.RoundsProducts())
	defer h.Team.RoundOperands(false)
	return h.seconds(rehearsal(f.Net, h.Features, h.Labels, h.Split, n, h.Team, a)) / float64(max(n, 1))
}

// gather returns the seconds per edge of a gather along the sample's edges.
func (h *Host) gather(width int, half bool) float64 {
	a := mapped.NewArena()
	defer a.Free()
	g, rows := h.Sample.gather(width)
	x, dst := kernels.NewMat(h.Team, a, rows, width), kernels.NewMat(h.Team, a, g.Rows(), width)
	h.Team.Clear(x) // pages that were never written share one page
	scale, e := kernels.NewVector[float32](h.Team, a, max(rows, g.Rows())), g.Edges()
	e.RowScale = scale
	if !half {
		e.ColScale = scale
		return h.seconds(func() { h.Team.SpMM(dst, e, x, false) }) / h.Sample.edges()
	}
	halves := kernels.NewHalf(h.Team, a, rows, width, kernels.HalfSlack)
	return h.seconds(func() {
		h.Team.Narrow(halves, x, scale)
		h.Team.SpMM(dst, e, halves, false)
	}) / h.Sample.edges()
}

// attention returns the seconds per edge of an attention layer, forward and backward.
func (h *Host) attention(l model.Gathering, net model.Spec) (there, back float64) {
	a := mapped.NewArena()
	defer a.Free()
	at := kernels.Attention{Heads: l.Heads, Width: l.Columns / l.Heads, Slope: 0.2, Dynamic: l.Dynamic}
	g, rows := h.Sample.gather(l.Width)
	n, e := g.Rows(), g.Edges()
	zeros := func(rows, cols int) kernels.Mat { return kernels.NewMat(h.Team, a, rows, cols) }
	if net.AttentionDropout > 0 && l.Width == at.Emitted() { // rows of several relations have no dropout of attention
		at.Drop = &kernels.Dropout{P: net.AttentionDropout, Seed: 1, Epoch: 1, IDs: kernels.NewVector[uint32](h.Team, a, max(rows, n))}
	}
	x, dst, grads := zeros(rows, l.Width), zeros(n, l.Width), zeros(max(rows, n), l.Columns)
	stats, heads, r, dr := zeros(n, 2*l.Heads), zeros(max(rows, n), l.Heads),
		zeros(max(rows, n), at.ScoreWidth()), zeros(n, at.ScoreWidth())
	if at.Dynamic {
		at.Vector = zeros(at.Heads, at.Width)
	}
	along := zeros(n, at.AlongWidth())
	there = h.seconds(func() {
		h.Team.AttentionGather(at, dst.Reshape(n, l.Columns), kernels.Mat{}, stats, e, kernels.Emitted{X: x}, r, false)
		h.Team.AttentionFinish(at, dst.Reshape(n, l.Columns), kernels.Mat{}, heads, stats)
	})
	h.Team.Clear(heads)
	own := kernels.Attended{R: r, LSE: heads, Grad: grads, Dots: heads}
	back = h.seconds(func() {
		h.Team.AttentionGradSrc(at, dst, e, 0, rows, x.Part(0, n), own)
		h.Team.AttentionGradDst(at, dr, along, e, kernels.Emitted{X: x}, own, false)
	})
	return there / h.Sample.edges(), back / h.Sample.edges()
}

// Codec returns the cost of a codec on rows of the widest exchange of a run. Half of the numbers are
// zeros, as after ReLU.
func (h *Host) Codec(rows codec.Codec, f *Forecast) codec.Cost {
	width := int(f.maxWidth())
	x := make([]float32, codedRows*width)
	for i := range x {
		if z := uint64(i) * 0x9e3779b97f4a7c15; z>>63 == 1 {
			x[i] = float32(z>>32&0xffff) / (1 << 14)
		}
	}
	return codec.Measure(h.Team, rows, codec.Rows{X: x, Cols: width, Len: codedRows}, false)
}

// Copies returns the bytes/s that one goroutine copies.
func (h *Host) Copies() float64 {
	const size = 32 << 20
	a := mapped.NewArena()
	defer a.Free()
	from, to := mapped.Make[byte](a, size), mapped.Make[byte](a, size)
	from[0] = 1
	return size / h.seconds(func() { copy(to, from) })
}
